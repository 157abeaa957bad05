"""Session profiles: the confs that make small commits cheap differ from those for many rows."""

from enum import Enum

from pyspark.sql import SparkSession

from dmdelta.lakehouse.session import clone_session, set_confs

SMALL_ROWS = 10_000
"""The largest number of rows that the small profile writes."""

SMALL_BYTES = 32 << 20
"""The largest part of the log that it reads: interpreted code filters rows more slowly than compiled code."""


class Profile(Enum):
    """The size of a session's work."""

    SMALL = "small"
    """Thousands of rows at most: planning, compiling and starting tasks cost more than the rows."""
    LARGE = "large"
    """Any number of rows: the confs of `open_session`."""


SMALL_CONFS = {
    # Each exchange would be planned, executed and then planned again.
    "spark.sql.adaptive.enabled": "false",
    # Compiling an expression costs more than interpreting it for a few thousand rows.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # Every commit would add all files of a small table to its checksum file, with histograms that nothing reads.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.databricks.delta.fileSizeHistogramMetrics.enabled": "false",
    "spark.databricks.delta.checksumDeletedRecordCountsHistogramMetrics.enabled": "false",
    # Each stage needs one task, also where it reads literal rows or a few files of a table's log.
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.minPartitionNum": "1",
    # Only listeners and the UI use the text of a plan, which contains every literal key. Writing it took a tenth of the
    # driver's time, mostly for the columns of Delta's log.
    "spark.sql.ui.explainMode": "SIMPLE",
    "spark.sql.debug.maxToStringFields": "1",
    "spark.sql.maxPlanStringLength": "100",
}


def plan_profile(rows: int, scanned: int = 0) -> Profile:
    """The profile for a commit.

    Args:
        rows: the rows that it writes or compacts.
        scanned: bytes of the log whose rows it reads from bronze; 0 if the rows are in memory.
    """
    return Profile.SMALL if rows <= SMALL_ROWS and scanned <= SMALL_BYTES else Profile.LARGE


def profile_session(spark: SparkSession, profile: Profile) -> SparkSession:
    """A separate session for work of a profile. Confs that a provided session rejects keep their values.

    Raises:
        LakehouseError: this version of Spark Connect cannot clone a session.
    """
    clone = clone_session(spark)
    if profile is Profile.SMALL:
        set_confs(clone, SMALL_CONFS)
    return clone
