"""Bronze rows that record a table's structure at a position, where the log itself does not contain it."""

from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema

_ROW = -3
"""Structure rows have negative numbers at their event; the log's own use -1, watermarks -2."""
_COLUMNS = {
    "source_id": T.StringType(),
    "epoch": T.IntegerType(),
    "seq": T.LongType(),
    "row": T.IntegerType(),
    "binlog_file": T.StringType(),
    "binlog_pos": T.LongType(),
    "committed_at": T.TimestampType(),
    "schema_name": T.StringType(),
    "table_name": T.StringType(),
    "op": T.StringType(),
    "ddl": T.StringType(),
    "schema_version": T.LongType(),
    "landed_at": T.TimestampType(),
    "landed_on": T.DateType(),
}


def structure_rows(
    spark: SparkSession,
    bronze: str,
    source_id: str,
    structures: Iterable[tuple[TableSchema, Position]],
    now: datetime,
) -> DataFrame:
    """Rows of bronze with op = schema, one for each structure, at its position. `now` is in UTC.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    rows = [
        (
            source_id,
            at.epoch,
            at.seq,
            _ROW,
            at.binlog_file,
            at.offset,
            now,
            *schema.name,
            Op.SCHEMA.value,
            schema.to_json(),
            schema.version,
            now,
            now.date(),
        )
        for schema, at in structures
    ]
    kinds = T.StructType([T.StructField(name, kind) for name, kind in _COLUMNS.items()])
    with wrapped(bronze, "reading"):
        structure_frame = spark.createDataFrame(rows, kinds).coalesce(1)
        return spark.read.table(bronze).where("false").unionByName(structure_frame, allowMissingColumns=True)
