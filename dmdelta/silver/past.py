"""A table's past in bronze: which stretches of it, one after the other, make the table as it was at a position.

A table begins with the rows that a snapshot read, or with its first event. An ad-hoc snapshot begins it again: what the
log said before may be what silver could not follow, so the newest snapshot before the position counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from pyspark.sql import SparkSession

from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.errors import QualityError
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.segment import FIRST_OFFSET

STRETCH_ROWS = 1_000_000
"""About so many row changes are applied by one commit: a replay that was killed goes on behind the last one."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """[begin, end) of a source's log, or of a snapshot's."""

    begin: Position
    end: Position


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
class Reread:
    """An ad-hoc snapshot of a table: its epoch, and where the log goes on behind it."""

    epoch: int
    goes_on: Position


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
    files: Sequence[FileRows],
    to: Position,
    rereads: Sequence[Reread] = (),
    exact: Mapping[int, Position] | None = None,
    stretch_rows: int = STRETCH_ROWS,
) -> tuple[Stretch, ...]:
    """The stretches that lead to the table at `to`; none if it has no past.

    Args:
        rereads: the table's ad-hoc snapshots.
        exact: where the log goes on for a table that a snapshot read exactly there, by the log's epoch.

    Raises:
        QualityError: rows that a snapshot read are not in bronze.
    """
    newest = min((one for one in rereads if one.goes_on <= to), key=lambda one: one.epoch, default=None)
    chosen = [file for file in files if file.begin < to and file.begin.epoch > 0]
    if newest is not None:
        log = [file for file in chosen if _ends_behind(file, newest.goes_on)]
        chosen = [*(file for file in files if file.begin.epoch == newest.epoch), *log]
    _assert_read(chosen)
    goes_on = dict(exact or {})
    if newest is not None:
        goes_on[newest.goes_on.epoch] = newest.goes_on
    logs = [list(group) for _, group in groupby(chosen, key=lambda file: file.begin.epoch)]
    stretches: list[Stretch] = []
    for log, following in zip_longest(logs, logs[1:]):
        begin = goes_on.get(log[0].begin.epoch, log[0].begin)
        last = log[-1].begin
        end = following[0].begin if following else to
        if last.chunk is not None:
            end = Position.of_chunk(last.epoch, last.chunk + 1)
        stretches += _cut(log, Stretch(begin, min(end, to)), stretch_rows)
    if stretches and stretches[-1].end < to:  # what drops a database names none of its tables
        log_begin = newest.goes_on if newest is not None else stretches[-1].end
        stretches.append(Stretch(goes_on.get(to.epoch, log_begin), to))
    return tuple(stretch for stretch in stretches if stretch.begin < stretch.end)


def _cut(files: Sequence[FileRows], whole: Stretch, rows: int) -> Iterator[Stretch]:
    """Parts of a stretch, of about so many rows, cut where files begin."""
    begin, waiting = whole.begin, 0
    for file in files:
        if waiting >= rows and begin < file.begin < whole.end:
            yield Stretch(begin, file.begin)
            begin, waiting = file.begin, 0
        waiting += file.rows
    yield Stretch(begin, whole.end)


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
