"""Further ends of slices: where an operator has decided something, and where a full load has read a table exactly."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.slices import Rows, Slice, Statement

FAR = "end.999999"
"""A file behind all that an epoch has."""


def cut(slices: Sequence[Slice], operators: Collection[Position], read_at: Mapping[TableName, Position]) -> list[Slice]:
    """The slices with these ends, and without what a full load has read of a table's log.

    Args:
        operators: where somebody has decided something, also about row changes. Statements end slices already.
        read_at: where the log goes on for tables that were read exactly at one position.
    """
    made: list[Slice] = []
    operators = set(operators) - {part.then.position for part in slices if part.then is not None}
    for part in slices:
        begin = part.begin
        for at in sorted(at for at in {*operators, *read_at.values()} if part.begin <= at < part.end):
            decided = Statement(at, "", (), "") if at in operators else None
            if at > begin or decided is not None:
                made.append(Slice(begin, at, True, _not_read(part.rows, at, read_at), decided))
            begin = at
        then = None if part.then is None or _is_read(part.then, read_at) else part.then
        made.append(Slice(begin, part.end, part.boundary, _not_read(part.rows, part.end, read_at), then))
    return made


def epochs(begin: Position, end: Position) -> Iterator[tuple[Position, Position]]:
    """A range in parts of one epoch each."""
    while begin.epoch < end.epoch:
        yield begin, Position(begin.epoch, FAR, 0)
        begin = Position(begin.epoch + 1, f"{end.binlog_file.rpartition('.')[0]}.000000", 0)
    if begin < end:
        yield begin, end


def _not_read(rows: Sequence[Rows], end: Position, read_at: Mapping[TableName, Position]) -> tuple[Rows, ...]:
    return tuple(one for one in rows if not _before(end, read_at.get(one.name)))


def _is_read(statement: Statement, read_at: Mapping[TableName, Position]) -> bool:
    """The structures that were read have it already: a TRUNCATE would empty what was read behind it."""
    tables = statement.tables
    return bool(tables) and all(name in read_at and statement.position < read_at[name] for name in tables)


def _before(end: Position, at: Position | None) -> bool:
    """In the log of the full load; what it has read itself is in an epoch before."""
    return at is not None and end.epoch == at.epoch and end <= at
