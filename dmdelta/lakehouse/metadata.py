"""Tables of dm_meta: made when first needed, owned by their task, only ever added to."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import ForeignTable
from dmdelta.lakehouse.creation import NewTable, create_table, make_schema
from dmdelta.lakehouse.foreign import is_absent, wrapped
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.tables import OWNER, table_state

Columns = Mapping[str, T.DataType]


def create_metadata(spark: SparkSession, lakehouse: Lakehouse, table: str, columns: Columns, task: str) -> bool:
    """Make a table of dm_meta (`table`: its SQL identifier) if it is not there, and widen one of an older version.

    Returns:
        True if it was there.

    Raises:
        ForeignTable: the table there is not this task's.
        LakehouseError: it cannot be made.
    """
    there = table_state(spark, table)
    if there is not None:
        there.assert_owned(table, task)
        _widen(spark, table, columns)
        return True
    kinds = {name: kind.simpleString() for name, kind in columns.items()}
    make_schema(spark, lakehouse, lakehouse.metadata_name)
    try:
        create_table(spark, table, NewTable(kinds, {"delta.checkpointInterval": "50", OWNER: task}))
    except ForeignTable:
        made = table_state(spark, table)  # somebody else may have made it meanwhile
        if made is None:
            raise
        made.assert_owned(table, task)
    return False


def _widen(spark: SparkSession, table: str, columns: Columns) -> None:
    """Add those of `columns` that a table of an older version lacks; NULL in the rows that are there."""
    with wrapped(table, "widening"):
        there = spark.sql(f"SELECT * FROM {table}").columns
        missing = [f"{name} {kind.simpleString()}" for name, kind in columns.items() if name not in there]
        if missing:
            spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(missing)})")


def metadata_rows(spark: SparkSession, table: str, query: str) -> list[Row]:
    """What a query on a table of dm_meta gives; nothing if the table is not there.

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
    """Rows to add, in one file; what a row does not name is NULL."""
    schema = T.StructType([T.StructField(name, kind) for name, kind in columns.items()])
    return spark.createDataFrame([tuple(row.get(name) for name in columns) for row in rows], schema).coalesce(1)
