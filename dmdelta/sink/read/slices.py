"""Splits a range of bronze into slices: at transaction boundaries, to bound memory, and at statements."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.errors import DmdeltaError
from dmdelta.model.position import FAR, FILE_SHIFT, Position
from dmdelta.model.schema import TableName

SLICE_BYTES = 32 << 20
"""Approximate size of one slice in bytes of the log."""
WINDOW_ROWS = 2_000_000
"""Approximate number of rows that are surveyed at once; each takes about 60 bytes of the driver."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A position with something other than row changes: a statement of the log, or an operator override.

    Attributes:
        schema: the session's default schema.
        tables: the tables that the statement changes.
        text: '' where the log has row changes.
    """

    position: Position
    schema: str
    tables: tuple[TableName, ...]
    text: str

    @property
    def dropped_schemas(self) -> list[str]:
        """The databases that it drops: `tables` are those that are known, and others may be dropped with them."""
        targets = statement_targets(self.text, self.schema)
        return [target.schema for target in targets if target.op == "drop_database"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Row changes of one table under one structure in a bucket of the log.

    Attributes:
        version: of the structure; None if unknown.
        ops: their operations; empty for an empty table of a full load.
        partial: number of images with only some of the columns.
        moves: number of updates that change the primary key.
        committed: they belong to XA transactions that commit there.
        first, last: `seq` of the first and the last of them.
    """

    name: TableName
    version: int | None
    ops: frozenset[str]
    partial: int = 0
    moves: int = 0
    committed: bool = False
    first: int = 0
    last: int = 0

    def joined(self, other: "Rows") -> "Rows":
        partial, moves = self.partial + other.partial, self.moves + other.moves
        committed = self.committed or other.committed
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Rows(
            name=self.name,
            version=self.version,
            ops=self.ops | other.ops,
            partial=partial,
            moves=moves,
            committed=committed,
            first=first,
            last=last,
        )


@dataclass(frozen=True, slots=True)
class Slice:
    """Row changes [begin, end) and what follows them.

    Attributes:
        boundary: the end is the end of a source transaction.
        rows: the row changes that may be in it, one entry per table and structure.
        then: the statement at its end; None: the next slice follows directly.
    """

    begin: Position
    end: Position
    boundary: bool
    rows: tuple[Rows, ...]
    then: Statement | None = None

    @property
    def commits(self) -> bool:
        """XA transactions commit in it."""
        return any(rows.committed for rows in self.rows)


@dataclass(frozen=True, slots=True)
class Cut:
    """A possible end of a slice; `boundary`: a transaction ends there."""

    position: Position
    boundary: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """The contents of a range.

    Attributes:
        rows: for each part of about a slice's size.
        cuts: at most one per bucket.
    """

    begin: Position
    end: Position
    rows: Sequence[Rows]
    cuts: Sequence[Cut]
    statements: Sequence[Statement]


def plan_slices(survey: Survey) -> list[Slice]:
    """The slices of a range in one epoch, at least one."""
    statements = {statement.position: statement for statement in survey.statements}
    ends = {cut.position: cut.boundary for cut in survey.cuts if survey.begin < cut.position < survey.end}
    ends |= dict.fromkeys(statements, True)
    ends[survey.end] = True
    slices: list[Slice] = []
    begin = survey.begin
    for end in sorted(ends):
        then = statements.get(end)
        if end > begin or then is not None:
            slices.append(Slice(begin, end, ends[end], _rows_between(survey, begin, end), then))
        begin = end
    return slices or [Slice(survey.begin, survey.end, True, ())]


def plan_windows(
    begin: Position, end: Position, rows: Mapping[int, int], at_once: int
) -> list[tuple[Position, Position]]:
    """Split a range of one epoch into windows of about `at_once` rows, which one survey can hold in memory.

    Args:
        rows: how many rows lie from each `seq` on, up to the next.
    """
    place = places(begin)
    edges, count = [begin], 0
    for seq in sorted(rows):
        if count and count + rows[seq] > at_once and seq > begin.seq:
            edges.append(place(seq))
            count = 0
        count += rows[seq]
    return list(itertools.pairwise([*edges, end]))


def _rows_between(survey: Survey, begin: Position, end: Position) -> tuple[Rows, ...]:
    return merged_rows(rows for rows in survey.rows if rows.first < end.seq and rows.last >= begin.seq)


def merged_rows(every: Iterable[Rows]) -> tuple[Rows, ...]:
    """One entry per table and structure."""
    by_key: dict[tuple[TableName, int | None], Rows] = {}
    for rows in every:
        known = by_key.get((rows.name, rows.version))
        by_key[rows.name, rows.version] = rows if known is None else known.joined(rows)
    return tuple(by_key[key] for key in sorted(by_key, key=str))


def places(begin: Position) -> Callable[[int], Position]:
    """A function from `seq` to the position, for the files of a range's log."""
    base, _, digits = begin.binlog_file.rpartition(".")

    def place(seq: int) -> Position:
        number, offset = seq >> FILE_SHIFT, seq & (1 << FILE_SHIFT) - 1
        return Position(begin.epoch, f"{base}.{number:0{len(digits)}d}", offset)

    return place


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


@contextmanager
def placed(at: Position) -> Iterator[None]:
    """Add the position to an error: an operator override needs it."""
    try:
        yield
    except DmdeltaError as error:
        error.context.setdefault("position", str(at))
        raise
