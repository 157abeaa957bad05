"""The table `dm_meta.<task>_validator`: progress, pending rows and errors of a task's validator, each a kind of entry.

Rows are added, and the newest of each thing counts; only errors that somebody clears are removed, with their values.
"""

from collections.abc import Collection
from datetime import datetime, timezone
from enum import Enum

from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import metadata_rows
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import literal

COLUMNS: dict[str, T.DataType] = {
    "id": T.StringType(),
    "entry": T.StringType(),
    "schema_name": T.StringType(),
    "table_name": T.StringType(),
    "row_key": T.StringType(),
    "key_parts": T.ArrayType(T.StringType()),
    "kind": T.StringType(),
    "state": T.StringType(),
    "row_values": T.StringType(),
    "since": T.TimestampType(),
    "position": T.StringType(),
    "progress": T.StringType(),
    "updated_at": T.TimestampType(),
}

RowId = tuple[TableName, str]
"""A table and the text of a row's key."""


class Entry(str, Enum):
    """What a row of the table is about."""

    PROGRESS = "progress"
    PENDING = "pending"
    ERROR = "error"


def validator_table(lakehouse: Lakehouse, task: str) -> str:
    """The SQL identifier of a task's validator table."""
    return lakehouse.metadata(f"{task}_validator")


def newest_entries(spark: SparkSession, table: str, source_id: str | None, entries: Collection[Entry]) -> list[Row]:
    """The newest row of each thing; none if there is no table.

    Raises:
        LakehouseError: the table cannot be read.
    """
    wanted = f"entry IN ({', '.join(literal(entry.value) for entry in entries)})"
    if source_id is not None:
        wanted += f" AND id = {literal(source_id)}"
    query = f"""SELECT max_by(struct(*), updated_at) AS newest FROM {table} WHERE {wanted}
        GROUP BY id, entry, schema_name, table_name, row_key"""
    return [row["newest"] for row in metadata_rows(spark, table, query)]


def utc(moment: datetime) -> datetime:
    """Spark hands timestamps out in this machine's zone, without saying so."""
    return moment.astimezone(timezone.utc)
