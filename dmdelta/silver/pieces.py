"""Cutting a range where the structure of the table changes: a pure plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dmdelta.ddl.evolution import AddColumns, Unsupported, plan_evolution, same_shape
from dmdelta.errors import UnknownSchema, UnsupportedSchemaChange
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.survey import StructureEvent


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a range in which the table has one structure.

    Attributes:
        schema: the structure, None if the log has not told it yet: then there are no rows.
        change: what is done to the silver table at the end of the piece.
        failure: why applying stops at the end of the piece, if there is a silver table by then.
        rest: what else the range says about the structure behind a failure.
    """

    begin: Position
    end: Position
    schema: TableSchema | None
    change: AddColumns | None = None
    failure: UnsupportedSchemaChange | None = None
    rest: tuple[StructureEvent, ...] = ()


def plan_pieces(
    name: tuple[str, str],
    known: TableSchema | None,
    structure: Sequence[StructureEvent],
    begin: Position,
    end: Position,
) -> tuple[Piece, ...]:
    """The pieces of [begin, end) in their order; at least one. A failure is in the last one.

    Args:
        name: schema and table of the source table.
        known: its structure at `begin`, None if it is not known.
        structure: what the range says about it, in order.
    """
    return tuple(_pieces(name, known, structure, begin, end))


def _pieces(
    name: tuple[str, str],
    known: TableSchema | None,
    structure: Sequence[StructureEvent],
    begin: Position,
    end: Position,
) -> Iterator[Piece]:
    schema = known
    for index, event in enumerate(structure):
        if event.op is Op.SCHEMA:
            told = TableSchema.from_json(event.text)
            if schema is not None and not same_shape(schema, told):
                reason = "the log tells another structure than the statements before it lead to"
                failure = _failure(name, event, reason)
                yield Piece(begin, event.position, schema, failure=failure, rest=tuple(structure[index:]))
                return
            schema = told
            continue
        plan = plan_evolution(schema, event.text, _next_told(structure[index + 1 :]), name[1])
        if isinstance(plan, Unsupported):
            failure = _failure(name, event, plan.reason)
            yield Piece(begin, event.position, schema, failure=failure, rest=tuple(structure[index + 1 :]))
            return
        if isinstance(plan, AddColumns):
            yield Piece(begin, event.position, schema, change=plan)
            begin = event.position
        schema = plan.schema
    yield Piece(begin, end, schema)


def known_schema(piece: Piece, name: tuple[str, str]) -> TableSchema:
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


def _next_told(structure: Sequence[StructureEvent]) -> TableSchema | None:
    texts = (event.text for event in structure if event.op is Op.SCHEMA)
    return next((TableSchema.from_json(text) for text in texts), None)


def unfillable(piece: Piece, name: tuple[str, str]) -> UnsupportedSchemaChange | None:
    """Why the rows that are there cannot get a value in the columns added at the end of a piece, None if they can."""
    reasons = [added.fill.unknown for added in piece.change.columns if added.fill.unknown] if piece.change else []
    return _failure(name, StructureEvent(piece.end, 0, Op.SCHEMA, ""), reasons[0]) if reasons else None


def _failure(name: tuple[str, str], event: StructureEvent, reason: str) -> UnsupportedSchemaChange:
    statement = "" if event.op is Op.SCHEMA else " ".join(event.text.split())[:200]
    return UnsupportedSchemaChange(
        f"silver cannot follow a change of {name[0]}.{name[1]}: {reason}",
        hint="silver stays where it is and bronze keeps every event: have the table read again "
        f"(dmdelta snapshot SPEC --table {name[0]}.{name[1]}), or leave it out with the block-allow-list",
        position=str(event.position),
        **({"ddl": statement} if statement else {}),
    )
