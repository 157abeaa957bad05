"""Cutting a range where the structure of the table changes: a pure plan."""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.errors import UnknownSchema, UnsupportedSchemaChange
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.schema.ddl_effects import DdlOutcome, TableLog, follow, next_told
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents


@dataclass(frozen=True, slots=True)
class SchemaRange:
    """Part of a range in which the table has one structure.

    Attributes:
        schema: the structure, None if the log has not told it yet: then there are no rows.
        then: what happens to the structure at the end of the piece, None at the range's end.
    """

    begin: Position
    end: Position
    schema: TableSchema | None
    then: DdlOutcome | None = None

    @property
    def after(self) -> TableSchema | None:
        """The structure behind the piece."""
        return self.then.schema if self.then else self.schema


def plan_schema_ranges(
    log: TableLog, known: TableSchema | None, begin: Position, end: Position
) -> tuple[SchemaRange, ...]:
    """The pieces of [begin, end) in their order; at least one.

    Args:
        known: the structure at `begin`, None if it is not known.
    """
    pieces: list[SchemaRange] = []
    schema = known
    for index, event in enumerate(log.structure):
        followed = follow(log, schema, event, next_told(log.structure[index + 1 :]))
        if (followed.effects or followed.refused) and (
            log.ddl_applied_to is None or event.position > log.ddl_applied_to
        ):
            pieces.append(SchemaRange(begin, event.position, schema, followed))
            begin = event.position
        schema = followed.schema
    return (*pieces, SchemaRange(begin, end, schema))


def known_schema(piece: SchemaRange, name: TableName) -> TableSchema:
    """The structure of a piece that has rows.

    Raises:
        UnknownSchema: the log does not tell it.
    """
    if piece.schema is None:
        raise UnknownSchema(
            f"bronze tells no structure of {name[0]}.{name[1]}",
            hint="rows are only applied from where bronze begins: start the task again with --remove-meta",
            position=str(piece.begin),
        )
    return piece.schema


def known_inside(piece: SchemaRange, pieces: Sequence[SchemaRange], events: TableEvents) -> TableEvents | None:
    """What a piece holds of its range's events, where their first and last place tell it; None where they do not."""
    within = [other for other in pieces if other.begin <= events.last and events.first < other.end]
    if piece not in within:
        return TableEvents(*events.name, {}, piece.begin, piece.begin)
    return events if len(within) == 1 else None


def refusal(name: TableName, event: StructureEvent, reason: str) -> UnsupportedSchemaChange:
    """The error of a statement that silver cannot follow."""
    statement = "" if event.op is Op.SCHEMA else " ".join(event.text.split())[:200]
    return UnsupportedSchemaChange(
        f"silver cannot follow a change of {name[0]}.{name[1]}: {reason}",
        hint="silver stays where it is and bronze keeps every event: have the table read again "
        f"(dmdelta snapshot SPEC --table {name[0]}.{name[1]}), do something else instead (dmdelta binlog skip, replace "
        "or inject SPEC --position …), or leave the table out with the block-allow-list",
        position=str(event.position),
        **({"ddl": statement} if statement else {}),
    )
