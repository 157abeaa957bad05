"""The rows of one shard in the merged table's structure, to compare them with the shard's rows in the log."""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from dmdelta.ddl.types.silver_types import OWN_COLUMNS, SHARD, silver_columns
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.schema import Column, StoredColumn, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.sharding import held_type, name_among
from dmdelta.sharding.operations import plain_type
from dmdelta.silver.table.target import Target


def seen_whole(target: Target, schema: TableSchema, held: DataFrame) -> TableSchema:
    """A source table's structure in silver; for a merged table with the columns of all shards.

    Args:
        held: the silver table.
    """
    seen = target.silver_schema(schema)
    if not target.merged:
        return seen
    own = {column.name.lower(): column for column in seen.columns}
    columns: list[Column] = []
    for field in held.schema.fields:
        column, kind = own.get(field.name.lower()), plain_type(field.dataType.simpleString())
        if field.name in OWN_COLUMNS:
            continue
        if column is None:
            columns.append(StoredColumn.of(Column(field.name, "varchar"), kind))
        else:
            named = replace(column, name=field.name)
            columns.append(named if held_type(named) == kind else StoredColumn.of(named, kind))
    key = tuple(name_among(held.columns, name) or name for name in seen.primary_key)
    return replace(seen, columns=tuple(columns), primary_key=key)


def shape_of(spark: SparkSession, target: Target, schema: TableSchema) -> DataFrame:
    """A frame with the columns of silver for a structure; for a merged table, its current columns.

    Raises:
        LakehouseError: the merged table cannot be read.
    """
    if target.merged and table_state(spark, target.place) is not None:
        with wrapped(target.place, "reading the columns of"):
            return spark.table(target.place)
    columns = silver_columns(target.silver_schema(schema)).items()
    values = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in columns)
    return spark.sql(f"SELECT {values} WHERE false")


def as_held(rows: DataFrame, held: DataFrame) -> DataFrame:
    """Rows with the columns, types and column order of a silver table; NULL in columns that the rows lack."""
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    columns = []
    for field in held.schema.fields:
        name, kind = name_among(kinds, field.name), field.dataType.simpleString()
        value = "NULL" if name is None else quote(name)
        same = name is not None and kinds[name] == kind
        columns.append(f"{value if same else f'CAST({value} AS {kind})'} AS {quote(field.name)}")
    return rows.selectExpr(*columns)


def shard_rows(target: Target, rows: DataFrame) -> DataFrame:
    """The source table's rows in its silver table."""
    return rows.where(target.own_rows) if target.merged else rows


def scratch_constants(target: Target) -> tuple[tuple[str, str], ...]:
    """The constant columns of a shard's rows in a replay table, in the form of a route's extracted columns."""
    return (*target.route.extracted, *(((SHARD, str(target.shard)),) if target.merged else ()))
