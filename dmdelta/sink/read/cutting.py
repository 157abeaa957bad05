"""Further slice ends: at operator overrides, and where a full load has read a table at one exact position."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.read.slices import Rows, Slice, Statement

FAR = "end.999999"
"""A file name after all files of an epoch."""


def cut(slices: Sequence[Slice], operators: Collection[Position], read_at: Mapping[TableName, Position]) -> list[Slice]:
    """Split the slices at these positions, and drop what a full load has already read of a table's log.

    Args:
        operators: positions of operator overrides, including those of row changes. Statements already end slices.
        read_at: where the log resumes for tables that were read at one exact position.
    """
    parts: list[Slice] = []
    operators = set(operators) - {part.then.position for part in slices if part.then is not None}
    for part in slices:
        begin = part.begin
        for at in sorted(at for at in {*operators, *read_at.values()} if part.begin <= at < part.end):
            override = Statement(at, "", (), "") if at in operators else None
            if at > begin or override is not None:
                parts.append(Slice(begin, at, True, _not_read(part.rows, at, read_at), override))
            begin = at
        then = None if part.then is None or _is_read(part.then, read_at) else part.then
        parts.append(Slice(begin, part.end, part.boundary, _not_read(part.rows, part.end, read_at), then))
    return parts


def epochs(begin: Position, end: Position) -> Iterator[tuple[Position, Position]]:
    """A range split by epoch."""
    while begin.epoch < end.epoch:
        yield begin, Position(begin.epoch, FAR, 0)
        begin = Position(begin.epoch + 1, f"{end.binlog_file.rpartition('.')[0]}.000000", 0)
    if begin < end:
        yield begin, end


def _not_read(rows: Sequence[Rows], end: Position, read_at: Mapping[TableName, Position]) -> tuple[Rows, ...]:
    return tuple(one for one in rows if not _before(end, read_at.get(one.name)))


def _is_read(statement: Statement, read_at: Mapping[TableName, Position]) -> bool:
    """The structures that were read include the statement: a TRUNCATE would delete rows that were read after it."""
    tables = statement.tables
    return bool(tables) and all(name in read_at and statement.position < read_at[name] for name in tables)


def _before(end: Position, at: Position | None) -> bool:
    """In the log that the full load covers; the rows that it read itself are in an earlier epoch."""
    return at is not None and end.epoch == at.epoch and end <= at
