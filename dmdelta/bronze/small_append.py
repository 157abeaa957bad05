"""Appends a small decoded batch to bronze with delta-rs: a hundredth of the CPU time of Spark's append."""

from typing import Any

from pyspark.sql import SparkSession

from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.access.table_writers import delta_rs_writes


def append_small(spark: SparkSession, bronze: str, rows: Any, tag: CommitTag) -> bool:
    """Append an Arrow table of bronze's columns in one commit.

    Returns:
        False if Spark has to append the rows: bronze is not under a local root, has a feature of Delta that delta-rs
        does not write, or Spark is writing it at this moment; or there are no rows.

    Raises:
        Fenced: another run committed under the tag's app at or after its version.
        LakehouseError: bronze cannot be written.
    """
    table = local_table(spark, bronze) if rows.num_rows else None
    if table is None or not table.is_plain(variants=True):
        return False
    with delta_rs_writes(bronze) as free:
        if free:
            table.append_arrow(rows, tag)
        return free
