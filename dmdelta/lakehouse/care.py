"""What keeps a Delta table fast and small: compaction, the purge of what deletion vectors hide, and VACUUM.

A table's own history tells what it needs (https://docs.delta.io/delta-utility/#history-schema). OPTIMIZE and VACUUM
change no row, and their commits are none of ours: who asks where a table is looks behind them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.foreign import is_absent, wrapped

HISTORY_COMMITS = 1000
"""So far back a table's history is read: what was done to it before is forgotten."""
COMPACT_FILES = 100
DEAD_SHARE = 0.2
VACUUM_EVERY = timedelta(days=1)
RETENTION = timedelta(days=7)
"""For so long Delta keeps files that are not of a table any more, unless the table's properties say otherwise."""
_ADDED = ("numFiles", "numTargetFilesAdded", "numAddedFiles")
_DEAD = ("numDeletedRows", "numUpdatedRows", "numTargetRowsUpdated", "numTargetRowsDeleted")
_CANNOT_VACUUM_LITE = "DELTA_CANNOT_VACUUM_LITE"


@dataclass(frozen=True, slots=True)
class Deed:
    """One commit of a table's history, as far as care goes by it; `metrics` as Delta names them."""

    at: datetime
    operation: str
    metrics: Mapping[str, str]

    def sum_of(self, names: Iterable[str]) -> int:
        return sum(int(self.metrics.get(name, 0)) for name in names)


@dataclass(frozen=True, slots=True)
class Wear:
    """What a table has been through.

    Attributes:
        new_files: added by writes since the table was compacted.
        dead_rows: taken out of files that still hold them, about, since they were purged.
        rows: that the table has.
        written_at: when it was last written, by whomever; None: not within the history that was read.
        vacuumed_at: when its old files were last removed, likewise.
        made_at: when it was made, likewise.
    """

    new_files: int = 0
    dead_rows: int = 0
    rows: int = 0
    written_at: datetime | None = None
    vacuumed_at: datetime | None = None
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CarePlan:
    """What a table needs, in the order in which it is done."""

    purge: bool = False
    compact: bool = False
    vacuum: bool = False

    @property
    def deeds(self) -> list[str]:
        """The names of what is done."""
        return [name for name in ("purge", "compact", "vacuum") if getattr(self, name)]


@dataclass(frozen=True, slots=True)
class Cared:
    """What was done to a table; files that came and went, None for what was not done.

    Attributes:
        purged_files: that were written anew without their dead rows.
        compacted_files: that became `new_files`.
        vacuumed: old files were looked for and removed.
    """

    table: str
    purged_files: int | None = None
    compacted_files: int | None = None
    new_files: int | None = None
    vacuumed: bool = False


def read_wear(spark: SparkSession, table: str) -> Wear | None:
    """What a table has been through; None if it is not there.

    Raises:
        LakehouseError: its history, or how many rows it has, cannot be read.
    """
    query = f"DESCRIBE HISTORY {table} LIMIT {HISTORY_COMMITS}"
    with wrapped(table, "reading the history of"):
        try:
            rows = spark.sql(query).select("timestamp", "operation", "operationMetrics").collect()
        except Exception as error:
            if is_absent(error):
                return None
            raise
        deeds = [
            Deed(row["timestamp"].astimezone(timezone.utc), row["operation"], row["operationMetrics"] or {})
            for row in rows
        ]
        (count,) = spark.sql(f"SELECT count(*) AS rows FROM {table}").collect()  # from the log alone
    return wear_of(deeds, count["rows"])


def wear_of(deeds: Sequence[Deed], rows: int) -> Wear:
    """What a history, newest first, says of a table that has so many rows."""
    new_files = dead_rows = 0
    compacted = purged = False
    written_at = vacuumed_at = None
    for deed in deeds:
        if deed.operation.startswith("VACUUM"):
            vacuumed_at = vacuumed_at or deed.at
            continue
        compacted = compacted or deed.operation in ("OPTIMIZE", "REORG")
        purged = purged or deed.operation == "REORG"
        if deed.operation in ("OPTIMIZE", "REORG"):
            written_at = written_at or deed.at
            continue
        added = deed.sum_of(_ADDED)
        written_at = written_at or (deed.at if added or deed.sum_of(_DEAD) else None)
        new_files += 0 if compacted else added
        dead_rows += 0 if purged else deed.sum_of(_DEAD)
    made_at = deeds[-1].at if 0 < len(deeds) < HISTORY_COMMITS else None
    return Wear(new_files, dead_rows, rows, written_at, vacuumed_at, made_at)


def plan_care(wear: Wear, now: datetime, *, thorough: bool = False) -> CarePlan:
    """What a table needs; `thorough`: also what could wait."""
    dead = wear.dead_rows > 0 and wear.dead_rows >= DEAD_SHARE * (wear.dead_rows + wear.rows)
    compact = wear.new_files >= (2 if thorough else COMPACT_FILES)
    return CarePlan(dead, compact, vacuum=_needs_vacuum(wear, now, thorough=thorough))


def _needs_vacuum(wear: Wear, now: datetime, *, thorough: bool) -> bool:
    if wear.vacuumed_at is None:
        young = wear.made_at is not None and now - wear.made_at < RETENTION
        return thorough or not young
    settled = wear.written_at is None or wear.vacuumed_at >= wear.written_at + RETENTION
    return not settled and (thorough or now - wear.vacuumed_at >= VACUUM_EVERY)


def care_for(spark: SparkSession, table: str, plan: CarePlan, where: str = "") -> Cared:
    """Do what is planned. Nobody else may change rows of the table meanwhile; appending and reading are fine.

    Args:
        where: a condition (SQL) of the partitions that are compacted; '' for all.

    Raises:
        CommitConflict: somebody did.
        LakehouseError: the table cannot be written.
    """
    purged, _ = _rewrite(spark, table, f"REORG TABLE {table} APPLY (PURGE)") if plan.purge else (None, None)
    reach(CrashPoint.CARE_BEFORE_COMPACTION)
    some = f" WHERE {where}" if where else ""
    gone, added = _rewrite(spark, table, f"OPTIMIZE {table}{some}") if plan.compact else (None, None)
    reach(CrashPoint.CARE_BEFORE_VACUUM)
    if plan.vacuum:
        _vacuum(spark, table)
    reach(CrashPoint.CARE_END)
    return Cared(table, purged, gone, added, plan.vacuum)


def _rewrite(spark: SparkSession, table: str, statement: str) -> tuple[int, int]:
    """How many files went and came."""
    with wrapped(table, "compacting"):
        rows = spark.sql(statement).select("metrics.numFilesRemoved", "metrics.numFilesAdded").collect()
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


def _vacuum(spark: SparkSession, table: str) -> None:
    """Remove the files that the table's log says are not needed any more; by listing them all, where it is too short.

    What was written and never committed stays in the first case: `VACUUM table` by hand removes it.
    """
    with wrapped(table, "vacuuming"):
        try:
            spark.sql(f"VACUUM {table} LITE").collect()
        except Exception as error:
            if _CANNOT_VACUUM_LITE not in str(error):
                raise
            spark.sql(f"VACUUM {table}").collect()
