"""What a snapshot wrote down about where a source's log was when it read a table."""

import json

from pyspark.sql import SparkSession

from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.place import literal
from dmdelta.model.change import Op
from dmdelta.model.position import Position


def exact_positions(spark: SparkSession, bronze: str, source_id: str) -> dict[tuple[str, str], Position]:
    """Where, by (schema, table), the log goes on for tables whose newest snapshot read them exactly at one position.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"""SELECT schema_name, table_name, max_by(struct(epoch, ddl), struct(epoch, seq)) AS newest FROM {bronze}
        WHERE source_id = {literal(source_id)} AND op = {literal(Op.WATERMARK.value)}
        GROUP BY schema_name, table_name"""
    with wrapped(bronze, "reading"):
        rows = spark.sql(query).collect()
    told = {
        (row["schema_name"], row["table_name"]): (row["newest"]["epoch"], json.loads(row["newest"]["ddl"]))
        for row in rows
    }
    # The log lands in the epoch behind the snapshot's.
    return {
        name: Position(epoch + 1, mark["file"], mark["pos"]) for name, (epoch, mark) in told.items() if mark["exact"]
    }
