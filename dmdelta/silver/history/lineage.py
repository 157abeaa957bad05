"""A table's history in bronze: the sequence of replay ranges that rebuilds the table as of a position.

The history starts with the rows of a snapshot, or with the table's first event. It restarts at the newest ad-hoc
snapshot before the position, because silver may have been unable to apply the log before that. Rows that a RENAME moved
are in the history of another table (`dmdelta.silver.history.former_names`), so each range names its table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

from pyspark.sql import SparkSession

from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.errors import QualityError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.segment import FIRST_OFFSET
from dmdelta.silver.apply.renames import Renaming

STRETCH_ROWS = 1_000_000
"""The approximate number of row changes per commit. An interrupted replay resumes after the last commit."""


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """A range [begin, end) of a source's log, or of a snapshot.

    Attributes:
        again: it may repeat changes of earlier ranges: the log overlaps a snapshot, or was restarted in a new epoch.
        table: the table whose events it contains; None for the table that is replayed.
        renaming: the statement at `begin` that gave the table the name `table`.
    """

    begin: Position
    end: Position
    again: bool = False
    table: TableName | None = None
    renaming: Renaming | None = None


@dataclass(frozen=True, slots=True)
class FileRows:
    """The row counts of a table in one file of a source's log, or in one chunk of a snapshot.

    Attributes:
        begin: the position of the file or the chunk.
        reads: snapshot rows.
        partial: partial row images.
    """

    begin: Position
    rows: int
    reads: int = 0
    partial: int = 0


@dataclass(frozen=True, slots=True)
class Carried:
    """A RENAME at which a table's history starts.

    Attributes:
        at: the position at which the table got its rows from another table, or lost its rows.
        spans_epochs: epochs before that of `at` contain some of the rows.
    """

    at: Position
    spans_epochs: bool = False


@dataclass(frozen=True, slots=True)
class Reread:
    """An ad-hoc snapshot of a table.

    Attributes:
        resume_position: the position from which the log is applied after it.
        until: the position up to which the log may overlap the snapshot; None if unknown.
    """

    epoch: int
    resume_position: Position
    until: Position | None = None


@dataclass(frozen=True, slots=True)
class LogBeginning:
    """How the log of an epoch starts for a table.

    Attributes:
        exact: the position at which a snapshot read the table; None if it was not read at one position.
        overlap_until: up to this position the log has changes that earlier rows may have: of a snapshot, which read
            them while they changed, or of log that is read again. Also if another server took over before the log had
            passed the snapshot. None: there are none.
    """

    exact: Position | None = None
    overlap_until: Position | None = None

    @property
    def known_from(self) -> Position | None:
        """The position from which the table's rows are known; None: all are."""
        return self.exact or self.overlap_until


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Where a table's history starts in the logs of a source.

    Attributes:
        rereads: the table's ad-hoc snapshots.
        exact: the position at which a full load read the table consistently, by the log's epoch. The log is applied
            from there.
        overlap_until: `LogBeginning.overlap_until` by epoch.
        carried: the RENAME at which the history starts; None if it starts with a snapshot or the first event.
    """

    rereads: Sequence[Reread] = ()
    exact: Mapping[int, Position] = field(default_factory=dict)
    overlap_until: Mapping[int, Position] = field(default_factory=dict)
    carried: Carried | None = None

    def log(self, epoch: int) -> LogBeginning:
        """How the log of an epoch starts, unless with an ad-hoc snapshot."""
        return LogBeginning(self.exact.get(epoch), self.overlap_until.get(epoch))

    def newest_read(self, to: Position) -> Reread | None:
        """The newest ad-hoc snapshot before a position."""
        return min((one for one in self.rereads if one.resume_position <= to), key=lambda one: one.epoch, default=None)


def files_of(spark: SparkSession, lakehouse: Lakehouse, source_id: str, table: TableName) -> list[FileRows]:
    """A table's row counts in bronze by file, in log order, snapshots first.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"""SELECT epoch, binlog_file, max(binlog_pos) AS last, count(*) AS rows, count(image) AS partial,
        count_if(op = 'read') AS reads FROM {lakehouse.bronze}
        WHERE {of_source(source_id)} AND {of_table(*table)} GROUP BY epoch, binlog_file"""
    with wrapped(lakehouse.bronze, "reading"):
        rows = spark.sql(query).collect()
    files = [
        FileRows(
            Position(row["epoch"], row["binlog_file"], FIRST_OFFSET if row["last"] else 0),
            row["rows"],
            row["reads"],
            row["partial"],
        )
        for row in rows
    ]
    return sorted(files, key=lambda file: file.begin)


def plan_past(
    files: Sequence[FileRows], to: Position, begun: Beginnings, stretch_rows: int = STRETCH_ROWS
) -> tuple[ReplayRange, ...]:
    """The ranges that rebuild the table as of `to`; none if it has no history.

    Raises:
        QualityError: bronze does not contain the rows of a snapshot.
    """
    carried = begun.carried
    newest = begun.newest_read(to) if carried is None else None
    chosen = [file for file in files if file.begin < to and file.begin.epoch > 0]
    resume_position, overlap_until = dict(begun.exact), dict(begun.overlap_until)
    if newest is not None:
        log = [file for file in chosen if _may_end_after(file, newest.resume_position)]
        chosen = [*(file for file in files if file.begin.epoch == newest.epoch), *log]
        resume_position[newest.resume_position.epoch] = newest.resume_position
        overlap_until[newest.resume_position.epoch] = newest.until or to
    if carried is not None:
        chosen = [file for file in chosen if _may_end_after(file, carried.at)]
        resume_position[carried.at.epoch] = carried.at
    _assert_read(chosen)
    logs = [list(group) for _, group in groupby(chosen, key=lambda file: file.begin.epoch)]
    stretches: list[ReplayRange] = []
    for log, following in zip_longest(logs, logs[1:]):
        begin = resume_position.get(log[0].begin.epoch, log[0].begin)
        last = log[-1].begin
        end = following[0].begin if following else to
        if last.chunk is not None:
            end = Position.of_chunk(last.epoch, last.chunk + 1)
        end = min(end, to)
        has_earlier = bool(stretches) or (carried is not None and carried.spans_epochs)
        overlap_end = min(overlap_until.get(begin.epoch, end), end) if has_earlier else begin
        stretches += _split(log, ReplayRange(begin, overlap_end, again=True), stretch_rows)
        stretches += _split(log, ReplayRange(max(begin, overlap_end), end), stretch_rows)
    if stretches and stretches[-1].end < to:  # DROP DATABASE does not name its tables
        log_begin = newest.resume_position if newest is not None else stretches[-1].end
        stretches.append(ReplayRange(resume_position.get(to.epoch, log_begin), to, again=True))
    return tuple(stretch for stretch in stretches if stretch.begin < stretch.end)


def begins_as(past: Sequence[ReplayRange], other: Sequence[ReplayRange]) -> bool:
    """Whether two histories of a table begin alike, so that a replay of the one can be continued with the other.

    They do not if an ad-hoc snapshot, or a RENAME that gave the table other rows, is between their ends.
    """
    return (past[0].begin, past[0].table) == (other[0].begin, other[0].table)


def _split(files: Sequence[FileRows], whole: ReplayRange, rows: int) -> Iterator[ReplayRange]:
    """Split a range at file boundaries into parts of approximately `rows` rows."""
    begin, pending = whole.begin, 0
    for file in files:
        if pending >= rows and begin < file.begin < whole.end:
            yield ReplayRange(begin, file.begin, whole.again)
            begin, pending = file.begin, 0
        pending += file.rows
    yield ReplayRange(begin, whole.end, whole.again)


def _may_end_after(file: FileRows, position: Position) -> bool:
    """Whether some of a file's events may be after a position."""
    begin = file.begin
    return begin >= Position(position.epoch, position.binlog_file, FIRST_OFFSET)


def _assert_read(files: Sequence[FileRows]) -> None:
    chunks = [file for file in files if file.begin.chunk is not None]
    if len(chunks) > 1 and not any(file.reads for file in chunks):
        raise QualityError(
            "bronze does not contain the rows of the snapshot: snapshot.bronze was false",
            hint="take an ad-hoc snapshot, which goes through bronze: dmdelta snapshot SPEC --table SCHEMA.TABLE",
        )
