"""Schema ranges: split a range where the structure of the table changes, as a pure plan."""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.errors import UnknownSchema, UnsupportedSchemaChange
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.schema.ddl_effects import DdlOutcome, TableLog, follow, next_recorded
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents


@dataclass(frozen=True, slots=True)
class SchemaRange:
    """A part of a range in which the table has one structure.

    Attributes:
        schema: the structure; None if the log has not recorded it yet, then there are no rows.
        then: the statement or structure at the end of this part; None at the range's end.
    """

    begin: Position
    end: Position
    schema: TableSchema | None
    then: DdlOutcome | None = None


def plan_schema_ranges(
    log: TableLog, known: TableSchema | None, begin: Position, end: Position
) -> tuple[SchemaRange, ...]:
    """The schema ranges of [begin, end) in order; at least one.

    Args:
        known: the structure at `begin`; None if unknown.
    """
    pieces: list[SchemaRange] = []
    schema = known
    for index, event in enumerate(log.structure):
        followed = follow(log, schema, event, next_recorded(log.structure[index + 1 :]))
        if (followed.effects or followed.refused) and (
            log.ddl_applied_to is None or event.position > log.ddl_applied_to
        ):
            pieces.append(SchemaRange(begin, event.position, schema, followed))
            begin = event.position
        schema = followed.schema
    return (*pieces, SchemaRange(begin, end, schema))


def known_schema(piece: SchemaRange, name: TableName) -> TableSchema:
    """The structure of a schema range that has rows.

    Raises:
        UnknownSchema: the log does not contain it.
    """
    if piece.schema is None:
        raise UnknownSchema(
            f"bronze does not contain the structure of {name[0]}.{name[1]}",
            hint="silver can only apply rows from the start of bronze: restart the task with --remove-meta",
            position=str(piece.begin),
        )
    return piece.schema


def known_inside(piece: SchemaRange, pieces: Sequence[SchemaRange], events: TableEvents) -> TableEvents | None:
    """The events of a schema range, if the positions of the range's first and last event determine them; else None."""
    within = [other for other in pieces if other.begin <= events.last and events.first < other.end]
    if piece not in within:
        return TableEvents(*events.name, {}, piece.begin, piece.begin)
    return events if len(within) == 1 else None


def refusal(name: TableName, event: StructureEvent, reason: str) -> UnsupportedSchemaChange:
    """The error for a statement that silver cannot apply."""
    statement = "" if event.op is Op.SCHEMA else " ".join(event.text.split())[:200]
    return UnsupportedSchemaChange(
        f"silver cannot apply a change of {name[0]}.{name[1]}: {reason}",
        hint="the silver table is unchanged and bronze contains every event: take a new snapshot of the table "
        f"(dmdelta snapshot SPEC --table {name[0]}.{name[1]}), override the statement (dmdelta binlog skip, replace "
        "or inject SPEC --position …), or exclude the table with the block-allow-list",
        position=str(event.position),
        **({"ddl": statement} if statement else {}),
    )
