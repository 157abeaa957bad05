"""Removes old commits from the log of a table under a local root, and repeats the positions that only they have."""

from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession

from dmdelta.lakehouse.access.local_root import local_metadata, local_table
from dmdelta.lakehouse.access.log_cleanup import LogCleanup, read_log_cleanup, remove_files, vacuumed_to
from dmdelta.lakehouse.maintenance.positions import keep_landed_positions, keep_silver_positions
from dmdelta.lakehouse.retention import FREQUENT, Retention, silver_retention
from dmdelta.lakehouse.tables import table_state


class Content(Enum):
    """What a table has, which determines whether its commits have positions."""

    BRONZE = "bronze"
    SILVER = "silver"
    QUARANTINE = "quarantine"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """A table of a task.

    Attributes:
        table: its SQL identifier.
        retention: unless the table's properties differ.
    """

    table: str
    content: Content
    retention: Retention = FREQUENT

    def old_commits(self, spark: SparkSession, retention: Retention) -> LogCleanup:
        """What of its log is older than `retention`, and not needed by the next VACUUM; nothing in an object store.

        Raises:
            LakehouseError: the table cannot be read.
        """
        local = local_table(spark, self.table)
        if local is None:
            return LogCleanup(None, ())
        if self.content is Content.METADATA and local_metadata(spark, self.table) is not None:
            return read_log_cleanup(local.log, retention.log)  # delta-rs lists the files
        vacuumed = vacuumed_to(local.log)
        # Before the first VACUUM, the log has to begin with the table.
        return read_log_cleanup(local.log, retention.log, 0 if vacuumed is None else vacuumed)


def maintained_silver(spark: SparkSession, table: str) -> MaintainedTable:
    """A silver table, by its SQL identifier."""
    return MaintainedTable(table, Content.SILVER, silver_retention(spark, table))


def clean_log(spark: SparkSession, table: MaintainedTable) -> int:
    """Remove what is old; returns the number of files. A silver table must have no other writer meanwhile.

    Raises:
        CommitConflict, LakehouseError: the table cannot be read, or a position cannot be repeated.
    """
    local, state = local_table(spark, table.table), table_state(spark, table.table)
    if local is None or state is None:
        return 0
    retention = table.retention.changed_by(state.properties)
    cleanup = table.old_commits(spark, retention)
    if cleanup.first is not None and not _keeps(spark, table, retention):
        return 0
    remove_files(local.log, cleanup)
    return len(cleanup.files)


def _keeps(spark: SparkSession, table: MaintainedTable, retention: Retention) -> bool:
    """Repeat what would be lost; False if that is not possible now."""
    if table.content is Content.BRONZE:
        return keep_landed_positions(spark, table.table, retention)
    if table.content is Content.SILVER:
        return keep_silver_positions(spark, table.table, retention)
    return True
