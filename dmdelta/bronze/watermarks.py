"""The log positions that a snapshot recorded when it read a table."""

import json
from collections.abc import Collection

from pyspark.sql import SparkSession

from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import literal


def exact_positions(
    spark: SparkSession, bronze: str, source_id: str, snapshot: tuple[int, int] | None = None
) -> dict[TableName, Position]:
    """The position at which the log continues for tables that a snapshot read exactly at one position.

    Args:
        snapshot: (its epoch, the log's) for one snapshot; None: the newest full load of each table, whose log is in the
            following epoch.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    epochs = "epoch > 0" if snapshot is None else f"epoch = {snapshot[0]}"
    query = f"""SELECT schema_name, table_name, max_by(struct(epoch, ddl), struct(epoch, seq)) AS newest FROM {bronze}
        WHERE source_id = {literal(source_id)} AND op = {literal(Op.WATERMARK.value)} AND {epochs}
        GROUP BY schema_name, table_name"""
    with wrapped(bronze, "reading"):
        rows = spark.sql(query).collect()
    watermarks = {
        (row["schema_name"], row["table_name"]): (row["newest"]["epoch"], json.loads(row["newest"]["ddl"]))
        for row in rows
    }
    return {
        name: Position(epoch + 1 if snapshot is None else snapshot[1], mark["file"], mark["pos"])
        for name, (epoch, mark) in watermarks.items()
        if mark["exact"]
    }


def known_tables(spark: SparkSession, bronze: str, source_id: str, tables: Collection[TableName]) -> set[TableName]:
    """The subset of `tables` whose structure has ever appeared in the log.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    listed = ", ".join(f"({literal(schema)}, {literal(table)})" for schema, table in sorted(tables))
    query = f"""SELECT DISTINCT schema_name, table_name FROM {bronze} WHERE source_id = {literal(source_id)}
        AND op IN ('schema', 'ddl') AND epoch > 0 AND (schema_name, table_name) IN ({listed})"""
    with wrapped(bronze, "reading"):
        return {(row["schema_name"], row["table_name"]) for row in spark.sql(query).collect()}
