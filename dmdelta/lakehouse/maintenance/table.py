"""Maintenance of a Delta table: compaction, the purge of rows hidden by deletion vectors, VACUUM, and the log.

A table's own history determines what it needs (https://docs.delta.io/delta-utility/#history-schema). OPTIMIZE and
VACUUM change no row, and their commits have no tag: looking up a table's position skips them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from dmdelta.errors import LakehouseError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.access.interface import PartitionBound
from dmdelta.lakehouse.access.local_root import local_metadata, local_table
from dmdelta.lakehouse.access.log_cleanup import record_vacuum
from dmdelta.lakehouse.access.spark import rewrite_files
from dmdelta.lakehouse.access.table_writers import delta_rs_writes, spark_writes, writes_alone
from dmdelta.lakehouse.creation import properties_list
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable, clean_log
from dmdelta.lakehouse.maintenance.purge import purge
from dmdelta.lakehouse.retention import DELTA, Retention, files_kept
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.lakehouse.tables import table_state

HISTORY_COMMITS = 1000
"""How many commits of a table's history are read: earlier operations are ignored."""
COMPACT_FILES = 100
NEW_FILE_BYTES = 16 << 20
"""The size of a large file in partitions that still grow. At 128 MB each compaction would write all of them again."""
DEAD_SHARE = 0.2
LOG_FILES = 500
"""So many files of a log are removed at once."""
_ADDED = ("numFiles", "numTargetFilesAdded", "numAddedFiles", "num_added_files")
_DEAD = ("numDeletedRows", "numUpdatedRows", "numTargetRowsUpdated", "numTargetRowsDeleted")
_IS_FULL = "operationParameters.isFull"
_CANNOT_VACUUM_LITE = "DELTA_CANNOT_VACUUM_LITE"


@dataclass(frozen=True, slots=True)
class MaintenanceAction:
    """One commit of a table's history, as far as relevant for maintenance; `metrics` with Delta's names.

    Attributes:
        full: OPTIMIZE has rewritten the whole table.
    """

    at: datetime
    operation: str
    metrics: Mapping[str, str]
    full: bool = False

    def sum_of(self, names: Iterable[str]) -> int:
        return sum(int(self.metrics.get(name, 0)) for name in names)


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The state of a table that determines its maintenance.

    Attributes:
        new_files: added by writes since the table was compacted.
        dead_rows: approximate number of deleted rows still in files, since the last purge.
        rows: number of rows of the table.
        written_at: time of the last write by any writer; None: not within the history that was read.
        vacuumed_at: time of the last removal of old files, likewise.
        made_at: creation time, likewise.
        retention: the table's.
        unset: a property of the retention is missing: an earlier version has created the table.
        old_log_files: files of the log that cleaning would remove.
    """

    new_files: int = 0
    dead_rows: int = 0
    rows: int = 0
    written_at: datetime | None = None
    vacuumed_at: datetime | None = None
    made_at: datetime | None = None
    retention: Retention = DELTA
    unset: bool = False
    old_log_files: int = 0


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The maintenance that a table needs, in order of execution.

    Attributes:
        again_at: when a table that needs none now needs some although nothing writes it; None: not before its next
            change.
    """

    retain: bool = False
    purge: bool = False
    compact: bool = False
    vacuum: bool = False
    clean: bool = False
    again_at: datetime | None = None

    @property
    def actions(self) -> list[str]:
        """The names of the planned actions."""
        return [name for name in ("retain", "purge", "compact", "vacuum", "clean") if getattr(self, name)]


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The maintenance of a table; numbers of removed and added files, None for actions that were not performed.

    Attributes:
        purged_files: files rewritten without their dead rows.
        compacted_files: files replaced by `new_files`.
        vacuumed: old files were searched for and removed.
        log_files: files removed from the log.
    """

    table: str
    purged_files: int | None = None
    compacted_files: int | None = None
    new_files: int | None = None
    vacuumed: bool = False
    log_files: int | None = None


def read_table_health(spark: SparkSession, maintained: MaintainedTable) -> TableHealth | None:
    """The state of a table that determines its maintenance; None if it does not exist.

    Raises:
        LakehouseError: its history, its properties or its row count cannot be read.
    """
    table = maintained.table
    query = f"DESCRIBE HISTORY {table} LIMIT {HISTORY_COMMITS}"
    with wrapped(table, "reading the history of"):
        try:
            rows = spark.sql(query).select("timestamp", "operation", "operationMetrics", _IS_FULL).collect()
        except Exception as error:
            if is_absent(error):
                return None
            raise
        actions = [
            MaintenanceAction(
                row["timestamp"].astimezone(timezone.utc),
                row["operation"],
                row["operationMetrics"] or {},
                row["isFull"] == "true",
            )
            for row in rows
        ]
        (count,) = spark.sql(f"SELECT count(*) AS rows FROM {table}").collect()  # from the log alone
    state = table_state(spark, table)
    properties = state.properties if state is not None else {}
    retention = maintained.retention.changed_by(properties)
    return replace(
        table_health_of(actions, count["rows"]),
        retention=retention,
        unset=any(name not in properties for name in maintained.retention.properties),
        old_log_files=len(maintained.old_commits(spark, retention).files),
    )


def table_health_of(actions: Sequence[MaintenanceAction], rows: int) -> TableHealth:
    """Derives the state from a history, newest first, of a table with this many rows."""
    new_files = dead_rows = 0
    compacted = purged = False
    written_at = vacuumed_at = None
    for action in actions:
        if action.operation.startswith("VACUUM"):
            vacuumed_at = vacuumed_at or action.at
            continue
        compacted = compacted or action.operation in ("OPTIMIZE", "REORG")
        purged = purged or action.operation == "REORG" or action.full
        if action.operation in ("OPTIMIZE", "REORG"):
            written_at = written_at or action.at
            continue
        added = action.sum_of(_ADDED)
        written_at = written_at or (action.at if added or action.sum_of(_DEAD) else None)
        new_files += 0 if compacted else added
        dead_rows += 0 if purged else action.sum_of(_DEAD)
    made_at = actions[-1].at if 0 < len(actions) < HISTORY_COMMITS else None
    return TableHealth(new_files, dead_rows, rows, written_at, vacuumed_at, made_at)


def plan_maintenance(wear: TableHealth, now: datetime, *, thorough: bool = False) -> MaintenancePlan:
    """The maintenance that a table needs; `thorough`: also what could wait."""
    dead = wear.dead_rows > 0 and wear.dead_rows >= DEAD_SHARE * (wear.dead_rows + wear.rows)
    return MaintenancePlan(
        retain=wear.unset,
        purge=dead,
        compact=wear.new_files >= (2 if thorough else COMPACT_FILES),
        vacuum=_needs_vacuum(wear, now, thorough=thorough),
        clean=wear.old_log_files >= (1 if thorough else LOG_FILES),
        again_at=min((time for time in _expiries(wear) if time > now), default=None),
    )


def _needs_vacuum(wear: TableHealth, now: datetime, *, thorough: bool) -> bool:
    if wear.vacuumed_at is None:
        young = wear.made_at is not None and now - wear.made_at < wear.retention.files
        return thorough or not young
    return not _is_settled(wear, wear.vacuumed_at) and (thorough or now - wear.vacuumed_at >= wear.retention.vacuum)


def _is_settled(wear: TableHealth, vacuumed_at: datetime) -> bool:
    """Whether a VACUUM has removed all files that the last write has replaced."""
    return wear.written_at is None or vacuumed_at >= wear.written_at + wear.retention.files


def _expiries(wear: TableHealth) -> Iterator[datetime]:
    """When files and commits of a table become old that nothing writes meanwhile."""
    retention = wear.retention
    if wear.vacuumed_at is None:
        if wear.made_at is not None:
            yield wear.made_at + retention.files
    elif not _is_settled(wear, wear.vacuumed_at):
        yield wear.vacuumed_at + retention.vacuum
    if wear.written_at is not None:
        yield wear.written_at + retention.log


def maintain_table(
    spark: SparkSession, maintained: MaintainedTable, plan: MaintenancePlan, since: PartitionBound | None = None
) -> MaintenanceResult:
    """Perform the planned maintenance. Other writers must not change rows of the table meanwhile; appends and reads are
    allowed.

    Args:
        since: the partitions to compact, which still grow; None: all.

    Raises:
        CommitConflict: another writer changed rows.
        LakehouseError: the table cannot be written.
    """
    table = maintained.table
    purged = gone = added = log_files = None
    if plan.retain:
        with wrapped(table, "changing"), spark_writes(table):
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties_list(maintained.retention.properties)})")
    if plan.purge:
        with spark_writes(table):
            purged = purge(spark, table)
    reach(CrashPoint.MAINTENANCE_BEFORE_COMPACTION)
    if plan.compact:
        gone, added = _compact(spark, maintained, since)
    reach(CrashPoint.MAINTENANCE_BEFORE_VACUUM)
    if plan.vacuum:
        with spark_writes(table):
            _vacuum(spark, table)
    if plan.clean:
        log_files = clean_log(spark, maintained)
    reach(CrashPoint.MAINTENANCE_END)
    return MaintenanceResult(table, purged, gone, added, plan.vacuum, log_files)


def _compact(spark: SparkSession, maintained: MaintainedTable, since: PartitionBound | None) -> tuple[int, int]:
    """Rewrite small files, with delta-rs if it can write the table: a twentieth of the CPU time of Spark.

    A quarantine is Spark's: its writers do not tell delta-rs that they write.
    """
    table = maintained.table
    local = local_table(spark, table) if maintained.content is not Content.QUARANTINE else None
    if local is not None and local.is_plain(variants=True):
        with delta_rs_writes(table) as free:
            if free:
                return local.compact(since, NEW_FILE_BYTES if since is not None else None)
    some = "" if since is None else f" WHERE {since.column} >= DATE'{since.first}'"
    with spark_writes(table):
        return rewrite_files(spark, table, f"OPTIMIZE {table}{some}")


def maintain_metadata(spark: SparkSession, maintained: MaintainedTable, plan: MaintenancePlan) -> MaintenanceResult:
    """Perform the planned maintenance of a table of dm_meta, to which other processes may append meanwhile.

    Raises:
        CommitConflict: another writer changed rows.
        LakehouseError: the table cannot be written.
    """
    table = maintained.table
    local = local_metadata(spark, table)
    if local is None:
        return maintain_table(spark, maintained, plan)
    if plan.retain:
        local.set_properties(maintained.retention.properties)
    # There is nothing to purge: delta-rs rewrites files from which it deletes rows.
    reach(CrashPoint.MAINTENANCE_BEFORE_COMPACTION)
    gone, added = local.compact() if plan.compact else (None, None)
    reach(CrashPoint.MAINTENANCE_BEFORE_VACUUM)
    if plan.vacuum:
        local.vacuum()
    log_files = clean_log(spark, maintained) if plan.clean else None
    reach(CrashPoint.MAINTENANCE_END)
    return MaintenanceResult(table, None, gone, added, plan.vacuum, log_files)


def _vacuum(spark: SparkSession, table: str) -> None:
    """Remove the files that the table's log no longer needs; if the log is too short, by listing all files.

    The first method leaves files that were written but never committed: `VACUUM table` removes them manually. The
    second one would remove those of a long write, too.
    """
    with wrapped(table, "vacuuming"):
        try:
            spark.sql(f"VACUUM {table} LITE").collect()
        except Exception as error:
            if _CANNOT_VACUUM_LITE not in str(error):
                raise
            if not writes_alone(table):
                hint = "it is repeated when nothing else writes the table"
                raise LakehouseError(f"{table} is being written, so its files cannot be listed", hint=hint) from error
            spark.sql(f"VACUUM {table}").collect()
            local = local_table(spark, table)
            if local is not None:
                record_vacuum(local.log, files_kept(spark, table))
