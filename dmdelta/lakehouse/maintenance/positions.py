"""Repeats the positions that only old commits of a table have, before maintenance removes these commits.

A table's newest own commit is its position, however old it is: that of a source that is idle, has ended or is no longer
in the spec, of a shard without changes, of a snapshot that takes hours.
"""

from datetime import datetime, timezone
from functools import partial

from pyspark.sql import SparkSession

from dmdelta.errors import UnsupportedTable
from dmdelta.lakehouse.access.commit_log import plan_kept
from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.access.table_writers import delta_rs_writes, spark_writes
from dmdelta.lakehouse.commits import USER_METADATA
from dmdelta.lakehouse.history import commits
from dmdelta.lakehouse.retention import Retention
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.spark_sql import literal

REPAIR = ":mend"
"""The end of the application of repairs, whose commits are not looked up."""
_KEPT_AT = "dmdelta.positions-kept"


def keep_landed_positions(spark: SparkSession, bronze: str, retention: Retention) -> bool:
    """Repeat the positions in bronze, and where epochs began; True unless it was not possible now.

    Other writers may land meanwhile.

    Raises:
        CommitConflict, LakehouseError: bronze cannot be written.
    """
    table = local_table(spark, bronze)
    if table is None or not table.is_plain(variants=True):
        return False
    before = datetime.now(timezone.utc) - retention.log / 2
    with delta_rs_writes(bronze) as free:
        if free:
            try:
                table.repeat(partial(plan_kept, before=before, is_needed=_is_looked_up, marks=True))
            except UnsupportedTable:
                return False
        return free


def keep_silver_positions(spark: SparkSession, table: str, retention: Retention) -> bool:
    """Repeat the positions of source tables in a silver table; True. It must have no other writer meanwhile.

    Raises:
        CommitConflict, LakehouseError: the table cannot be written.
    """
    before = datetime.now(timezone.utc) - retention.log / 2
    kept = plan_kept(commits(spark, table, None), before, _is_looked_up, marks=False)
    if kept is None:
        return True
    with wrapped(table, "changing"), spark_writes(table):
        spark.conf.set(USER_METADATA, kept.to_json())
        try:
            now = literal(datetime.now(timezone.utc).isoformat(timespec="seconds"))
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({literal(_KEPT_AT)} = {now})").collect()
        finally:
            spark.conf.unset(USER_METADATA)
    return True


def _is_looked_up(tag: CommitTag) -> bool:
    return not tag.app.endswith(REPAIR)
