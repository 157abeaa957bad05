"""The log positions that a snapshot recorded when it read a table."""

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
    """The position at which the log continues for tables of which a snapshot read all chunks exactly at one position.

    Args:
        snapshot: (its epoch, the log's) for one snapshot; None: the newest full load of each table, whose log is in the
            following epoch.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    epochs = "epoch > 0" if snapshot is None else f"epoch = {snapshot[0]}"
    place = "struct(get_json_object(ddl, '$.file') AS file, CAST(get_json_object(ddl, '$.pos') AS BIGINT) AS pos)"
    # A load whose consistency was changed has chunks of both kinds: one without a lock may be older than the others.
    query = f"""SELECT schema_name, table_name, epoch, min({place}) AS place,
        bool_and(get_json_object(ddl, '$.exact') = 'true') AND min({place}) = max({place}) AS exact FROM {bronze}
        WHERE source_id = {literal(source_id)} AND op = {literal(Op.WATERMARK.value)} AND {epochs}
        GROUP BY schema_name, table_name, epoch ORDER BY epoch"""
    with wrapped(bronze, "reading"):
        rows = spark.sql(query).collect()
    newest = {(row["schema_name"], row["table_name"]): row for row in rows}
    return {
        name: Position(row["epoch"] + 1 if snapshot is None else snapshot[1], row["place"]["file"], row["place"]["pos"])
        for name, row in newest.items()
        if row["exact"]
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
