"""Delta tables as such: whether they are there and whose they are."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dmdelta.errors import ForeignTable
from dmdelta.lakehouse.foreign import is_absent, wrapped

OWNER = "dmdelta.task"
SOURCE_ID = "dmdelta.source-id"
SOURCE_TABLE = "dmdelta.source-table"
UNFINISHED = "dmdelta: a table that is not whole yet"
"""Metadata of the commits that make a table, where it takes several."""
_ONLY_DELTA = "delta.minReaderVersion"


@dataclass(frozen=True, slots=True)
class TableState:
    """What there is at an identifier: Delta's own description of a table."""

    properties: Mapping[str, str]

    def assert_owned(self, table: str, task: str) -> None:
        """
        Raises:
            ForeignTable: this task did not make the table.
        """
        owner = self.properties.get(OWNER)
        if owner != task:
            whose = f"the task {owner!r} made" if owner else "dmdelta did not make"
            hint = "route the source table elsewhere, choose another root, or move that table away"
            raise ForeignTable(f"{whose} the Delta table {table}", hint=hint, task=task)


def table_state(spark: SparkSession, table: str) -> TableState | None:
    """The Delta table at an identifier, None if there is none, or only one that was never finished.

    Raises:
        LakehouseError: it cannot be told.
    """
    state = _state(spark, table)
    unowned = state is not None and OWNER not in state.properties
    return None if unowned and is_unfinished(spark, table) else state


def is_unfinished(spark: SparkSession, table: str) -> bool:
    """A table is there that a killed process has left behind while it made it.

    Raises:
        LakehouseError: its history cannot be read.
    """
    with wrapped(table, "reading the history of"):
        try:
            newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").select("userMetadata").collect()
        except Exception as error:
            if is_absent(error):
                return False
            raise
    return any(row["userMetadata"] == UNFINISHED for row in newest)


def _state(spark: SparkSession, table: str) -> TableState | None:
    with wrapped(table, "looking at"):
        try:
            properties: dict[str, str] = dict(spark.sql(f"SHOW TBLPROPERTIES {table}").collect())
            if _ONLY_DELTA in properties:
                return TableState(properties)
        except AnalysisException as error:  # which of many things another one means, the detail tells
            if is_absent(error):
                return None
        try:
            # Reads all of the log that is not checkpointed: half a second for what is there.
            (row,) = spark.sql(f"DESCRIBE DETAIL {table}").select("format", "properties").collect()
        except Exception as error:
            if is_absent(error):
                return None
            raise
    return TableState(row["properties"]) if row["format"] == "delta" else None
