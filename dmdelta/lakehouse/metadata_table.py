"""Tables in dm_meta: created when first needed, owned by their task, append-only."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import ForeignTable
from dmdelta.lakehouse.creation import NewTable, create_table, make_schema
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.lakehouse.tables import OWNER, table_state

Columns = Mapping[str, T.DataType]


def create_metadata(spark: SparkSession, lakehouse: Lakehouse, table: str, columns: Columns, task: str) -> bool:
    """Create a table in dm_meta (`table`: its SQL identifier) if it does not exist; add columns that an older version
    lacks.

    Returns:
        True if it existed.

    Raises:
        ForeignTable: the existing table does not belong to this task.
        LakehouseError: it cannot be created.
    """
    existing = table_state(spark, table)
    if existing is not None:
        existing.assert_owned(table, task)
        _widen(spark, table, columns)
        return True
    kinds = {name: kind.simpleString() for name, kind in columns.items()}
    make_schema(spark, lakehouse, lakehouse.metadata_name)
    try:
        create_table(spark, table, NewTable(kinds, {"delta.checkpointInterval": "50", OWNER: task}))
    except ForeignTable:
        existing = table_state(spark, table)  # another process may have created it meanwhile
        if existing is None:
            raise
        existing.assert_owned(table, task)
    return False


def _widen(spark: SparkSession, table: str, columns: Columns) -> None:
    """Add those of `columns` that a table of an older version lacks; NULL in existing rows."""
    with wrapped(table, "adding columns to"):
        existing = spark.sql(f"SELECT * FROM {table}").columns
        missing = [f"{name} {kind.simpleString()}" for name, kind in columns.items() if name not in existing]
        if missing:
            spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(missing)})")


def metadata_rows(spark: SparkSession, table: str, query: str) -> list[Row]:
    """The result of a query on a table in dm_meta; empty if the table does not exist.

    Raises:
        LakehouseError: it cannot be read.
    """
    with wrapped(table, "reading"):
        try:
            return spark.sql(query).collect()
        except Exception as error:
            if is_absent(error):
                return []
            raise


def metadata_frame(spark: SparkSession, columns: Columns, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Rows to append, in one file; columns that a row does not contain are NULL."""
    schema = T.StructType([T.StructField(name, kind) for name, kind in columns.items()])
    return spark.createDataFrame([tuple(row.get(name) for name in columns) for row in rows], schema).coalesce(1)
