"""A table's past in bronze: which stretches of it, one after the other, make the table as it was at a position.

A table begins with the rows that a snapshot read, or with its first event. An ad-hoc snapshot begins it again: what the
log said before may be what silver could not follow, so the newest snapshot before the position counts. What a RENAME
gave a table is in the past of another one (`dmdelta.silver.history.former_names`): each range names its own table.
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
"""About so many row changes are applied by one commit: a replay that was killed goes on behind the last one."""


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """[begin, end) of a source's log, or of a snapshot's.

    Attributes:
        again: it may tell what was told before it: by a snapshot, or by a log that was begun anew.
        table: the table whose events it has; None: the one that is replayed.
        renaming: the statement at `begin` behind which the rows have the name `table`.
    """

    begin: Position
    end: Position
    again: bool = False
    table: TableName | None = None
    renaming: Renaming | None = None


@dataclass(frozen=True, slots=True)
class FileRows:
    """What one file of a source's log, or one chunk of a snapshot, holds of a table.

    Attributes:
        begin: of the file, or where the chunk stands.
        reads: rows that a snapshot read.
        partial: row images with only some of the columns.
    """

    begin: Position
    rows: int
    reads: int = 0
    partial: int = 0


@dataclass(frozen=True, slots=True)
class Carried:
    """What a RENAME made of a table's past.

    Attributes:
        at: where the table got its rows from another one, or lost those that it had.
        told: epochs before that of `at` have told some of the rows.
    """

    at: Position
    told: bool = False


@dataclass(frozen=True, slots=True)
class Reread:
    """An ad-hoc snapshot of a table.

    Attributes:
        resume_position: where the log goes on behind it.
        until: up to where the log may tell what was read; None: nobody remembers.
    """

    epoch: int
    resume_position: Position
    until: Position | None = None


@dataclass(frozen=True, slots=True)
class Beginnings:
    """How the logs of a source began for a table.

    Attributes:
        rereads: the table's ad-hoc snapshots.
        exact: where the log goes on for a table that a full load read exactly there, by the log's epoch.
        overlap_until: up to where the log of an epoch may tell what was told before, by epoch.
        carried: a RENAME is where the table begins; None: a snapshot or its first event is.
    """

    rereads: Sequence[Reread] = ()
    exact: Mapping[int, Position] = field(default_factory=dict)
    overlap_until: Mapping[int, Position] = field(default_factory=dict)
    carried: Carried | None = None

    def newest_read(self, to: Position) -> Reread | None:
        """The last ad-hoc snapshot before a position."""
        return min((one for one in self.rereads if one.resume_position <= to), key=lambda one: one.epoch, default=None)


def files_of(spark: SparkSession, lakehouse: Lakehouse, source_id: str, table: TableName) -> list[FileRows]:
    """What bronze holds of a table, file by file in the log's order, snapshots first.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"""SELECT epoch, binlog_file, max(binlog_pos) AS last, count(*) AS rows, count(image) AS partial,
        count_if(op = 'read') AS reads FROM {lakehouse.bronze}
        WHERE {of_source(source_id)} AND {of_table(*table)} GROUP BY epoch, binlog_file"""
    with wrapped(lakehouse.bronze, "reading"):
        rows = spark.sql(query).collect()
    found = [
        FileRows(
            Position(row["epoch"], row["binlog_file"], FIRST_OFFSET if row["last"] else 0),
            row["rows"],
            row["reads"],
            row["partial"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda file: file.begin)


def plan_past(
    files: Sequence[FileRows], to: Position, begun: Beginnings, stretch_rows: int = STRETCH_ROWS
) -> tuple[ReplayRange, ...]:
    """The stretches that lead to the table at `to`; none if it has no past.

    Raises:
        QualityError: rows that a snapshot read are not in bronze.
    """
    carried = begun.carried
    newest = begun.newest_read(to) if carried is None else None
    chosen = [file for file in files if file.begin < to and file.begin.epoch > 0]
    resume_position, overlap_until = dict(begun.exact), dict(begun.overlap_until)
    if newest is not None:
        log = [file for file in chosen if _ends_behind(file, newest.resume_position)]
        chosen = [*(file for file in files if file.begin.epoch == newest.epoch), *log]
        resume_position[newest.resume_position.epoch] = newest.resume_position
        overlap_until[newest.resume_position.epoch] = newest.until or to
    if carried is not None:
        chosen = [file for file in chosen if _ends_behind(file, carried.at)]
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
        told = bool(stretches) or (carried is not None and carried.told)
        again = min(overlap_until.get(begin.epoch, end), end) if told else begin
        stretches += _cut(log, ReplayRange(begin, again, again=True), stretch_rows)
        stretches += _cut(log, ReplayRange(max(begin, again), end), stretch_rows)
    if stretches and stretches[-1].end < to:  # what drops a database names none of its tables
        log_begin = newest.resume_position if newest is not None else stretches[-1].end
        stretches.append(ReplayRange(resume_position.get(to.epoch, log_begin), to, again=True))
    return tuple(stretch for stretch in stretches if stretch.begin < stretch.end)


def _cut(files: Sequence[FileRows], whole: ReplayRange, rows: int) -> Iterator[ReplayRange]:
    """Parts of a stretch, of about so many rows, cut where files begin."""
    begin, waiting = whole.begin, 0
    for file in files:
        if waiting >= rows and begin < file.begin < whole.end:
            yield ReplayRange(begin, file.begin, whole.again)
            begin, waiting = file.begin, 0
        waiting += file.rows
    yield ReplayRange(begin, whole.end, whole.again)


def _ends_behind(file: FileRows, position: Position) -> bool:
    """Some of a file's events may be behind a position."""
    begin = file.begin
    return begin >= Position(position.epoch, position.binlog_file, FIRST_OFFSET)


def _assert_read(files: Sequence[FileRows]) -> None:
    chunks = [file for file in files if file.begin.chunk is not None]
    if len(chunks) > 1 and not any(file.reads for file in chunks):
        raise QualityError(
            "the rows that the snapshot read are not in bronze: snapshot.bronze was false",
            hint="have the table read again, which goes by bronze: dmdelta snapshot SPEC --table SCHEMA.TABLE",
        )
