"""How far a source has landed, as bronze's own commits record it."""

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.history import epoch_marks, newest_own_commit
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.model.gtid import GtidSet, parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

BATCH_BYTES = 256 << 20
"""Maximum log bytes of a batch: large enough to amortize the cost of a commit, here and in silver."""


def landing_app(task: str, source_id: str) -> str:
    """The Delta transaction application of a source's landing commits."""
    return f"dmdelta:{task}:{source_id}:land"


@dataclass(frozen=True, slots=True)
class LandedRange:
    """The progress of bronze: the newest landing commit of a source.

    Attributes:
        safe_until: ranges that start before it may have been applied already, from a snapshot or an earlier epoch;
            its server may have replaced the one whose log was applied.
        at: its commit time, in UTC; None: in this run.
    """

    batch: int
    begin: Position
    end: Position
    gtid_set: GtidSet
    safe_until: Position | None = None
    at: datetime | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """Approximate bytes of the log: unknown across a file boundary."""
        same_file = self.begin.binlog_file == self.end.binlog_file
        return self.end.offset - self.begin.offset if same_file else BATCH_BYTES

    @property
    def safe_beyond(self) -> Position | None:
        """The part of `safe_until` that the next batch inherits."""
        return self.safe_until if self.safe_until is not None and self.safe_until > self.end else None

    def join(self, following: "LandedRange") -> "LandedRange":
        """One range of two adjacent ones; it has the later one's number, which identifies its end."""
        return replace(following, begin=self.begin, safe_until=following.safe_until or self.safe_until)


def plan_rest(until: Position, ended: Position | None, log_end: Position | None) -> Position | None:
    """Up to where the log of a server that took over has the rest of an overlap; None: nothing of it.

    It has the rest at other positions, all before the end that it had when it took over.

    Args:
        until: the end of the overlap in the log of the server before.
        ended: how far that log has landed; None: unknown.
        log_end: where the log of the server that took over ended then; None: it is the same server, or unknown.
    """
    return log_end if ended is None or ended < until else None


def newest_landed(spark: SparkSession, source: SourceContext) -> LandedRange | None:
    """The progress recorded in bronze itself; None if nothing of this source ever landed.

    Raises:
        LakehouseError: bronze cannot be read, or its history has lost the position.
    """
    landed = recorded_landed(spark, source)
    if landed is None and has_landed(spark, source):
        raise LakehouseError(
            f"the history of {source.bronze} no longer contains the position of {source.source_id}",
            hint="run the task with --start-time and a time before its newest change in bronze, or with --remove-meta: "
            "the log is read again from there",
        )
    return landed


def recorded_landed(spark: SparkSession, source: SourceContext) -> LandedRange | None:
    """As `newest_landed`, but None also if the history has lost the position."""
    commit = newest_own_commit(spark, source.bronze, landing_app(source.task, source.source_id))
    return replace(landed_range(commit.tag, source), at=commit.at) if commit is not None else None


def has_landed(spark: SparkSession, source: SourceContext) -> bool:
    """Whether anything of this source ever landed, whatever the history tells.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    local = local_table(spark, source.bronze)
    with suppress(UnsupportedTable):
        if local is not None:
            return local.transaction_version(landing_app(source.task, source.source_id)) is not None
    return bool(_rows_landed(spark, source))


def newest_epoch(spark: SparkSession, source: SourceContext) -> int:
    """The newest epoch of a source's rows; 0 if it has none.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    return max((row["epoch"] or 0 for row in _rows_landed(spark, source)), default=0)


def _rows_landed(spark: SparkSession, source: SourceContext) -> list[Row]:
    """The newest epoch of a source's rows; empty if there are none, or no bronze."""
    query = f"SELECT max(epoch) AS epoch FROM {source.bronze} WHERE source_id = {literal(source.source_id)}"
    with wrapped(source.bronze, "reading"):
        try:
            return spark.sql(f"{query} HAVING count(*) > 0").collect()
        except Exception as error:
            if is_absent(error):
                return []
            raise


def landed_range(tag: CommitTag, source: SourceContext) -> LandedRange:
    """The range of a landing commit."""
    return LandedRange(
        tag.version, tag.begin, tag.end, parse_gtid_set(tag.gtid_set or "", source.flavor), tag.safe_until
    )


def newest_beginning(spark: SparkSession, source: SourceContext) -> Position | None:
    """The position at which the newest epoch was started by a request; None if it was not, or if unknown."""
    app = landing_app(source.task, source.source_id)
    newest = newest_own_commit(spark, source.bronze, app)
    marks = epoch_marks(spark, source.bronze, app) if newest is not None else []
    return next((tag.end for tag in marks if newest is not None and tag.end.epoch == newest.tag.end.epoch), None)


def first_number(spark: SparkSession, source: SourceContext) -> int:
    """The number of the first batch. If the history has lost the numbers that Delta knows, it is beyond all of them:
    fewer than a thousand batches land in a second.
    """
    return time.time_ns() // 1_000_000 if has_landed(spark, source) else 1
