"""Existence and ownership of Delta tables."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dmdelta.errors import ForeignTable, UnsupportedTable
from dmdelta.lakehouse.access.deferred_session import is_unstarted
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.access.object_store import object_table
from dmdelta.lakehouse.history import commits
from dmdelta.lakehouse.spark_errors import is_absent, wrapped

OWNER = "dmdelta.task"
SOURCE_ID = "dmdelta.source-id"
SOURCE_TABLE = "dmdelta.source-table"
UNFINISHED = "dmdelta: a table that is not whole yet"
"""Metadata of the commits that create a table, if it takes several."""
_ONLY_DELTA = "delta.minReaderVersion"


@dataclass(frozen=True, slots=True)
class TableState:
    """Delta's own description of the table at an identifier."""

    properties: Mapping[str, str]

    def assert_owned(self, table: str, task: str) -> None:
        """Check the table's owner.

        Raises:
            ForeignTable: this task did not create the table.
        """
        owner = self.properties.get(OWNER)
        if owner != task:
            whose = f"task {owner!r} created" if owner else "dmdelta did not create"
            hint = "route the source table elsewhere, choose another root, or move that table away"
            raise ForeignTable(f"{whose} the Delta table {table}", hint=hint, task=task)


def table_state(spark: SparkSession, table: str) -> TableState | None:
    """The Delta table at an identifier; None if there is none, or only one whose creation was not completed.

    Raises:
        LakehouseError: its state cannot be read.
    """
    state = _state(spark, table)
    unowned = state is not None and OWNER not in state.properties
    return None if unowned and is_unfinished(spark, table) else state


def properties_of(spark: SparkSession, table: str) -> Mapping[str, str]:
    """The properties of the Delta table at an identifier, under a local root without Spark; empty if there is none.

    Raises:
        LakehouseError: they cannot be read.
    """
    reader = local_table(spark, table)
    if reader is not None:
        with suppress(UnsupportedTable):
            return reader.properties() or {}
    state = _state(spark, table)
    return state.properties if state is not None else {}


def is_unfinished(spark: SparkSession, table: str) -> bool:
    """Whether a table exists that a killed process left while creating it.

    Raises:
        LakehouseError: its history cannot be read.
    """
    return any(commit.user_metadata == UNFINISHED for commit in commits(spark, table, 1))


def _state(spark: SparkSession, table: str) -> TableState | None:
    reader = (local_table(spark, table) or object_table(spark, table)) if is_unstarted(spark) else None
    if reader is not None:
        with suppress(UnsupportedTable):
            properties = reader.properties()
            return None if properties is None else TableState(properties)
    with wrapped(table, "reading the properties of"):
        try:
            found: dict[str, str] = dict(spark.sql(f"SHOW TBLPROPERTIES {table}").collect())
            if _ONLY_DELTA in found:
                return TableState(found)
        except AnalysisException as error:  # the next query's error determines which of many causes another one has
            if is_absent(error):
                return None
        try:
            # Reads all of the log that is not checkpointed: half a second for an existing table.
            (row,) = spark.sql(f"DESCRIBE DETAIL {table}").select("format", "properties").collect()
        except Exception as error:
            if is_absent(error):
                return None
            raise
    return TableState(row["properties"]) if row["format"] == "delta" else None
