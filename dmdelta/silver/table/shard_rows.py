"""The rows of one shard of a merged table: in the merged table's structure, or converted to the shard's own types."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from dmdelta.ddl.types.silver_types import OWN_COLUMNS, SHARD, silver_columns, silver_type
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.schema import Column, StoredColumn, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.sharding import held_type, name_among
from dmdelta.sharding.operations import plain_type
from dmdelta.silver.table.target import Target

_NOT_CAST = ("BINARY", "VARIANT", "STRUCT", "ARRAY")


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


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The rows of one source table in silver.

    Attributes:
        rows: the common columns under the source's names, then silver's own columns.
        absent: columns of other shards, which are NULL in these rows. `rows` contains them, too.
    """

    rows: DataFrame
    absent: tuple[str, ...] = ()


def own_rows(target: Target, schema: TableSchema, rows: DataFrame) -> OwnRows:
    """The rows of a source table in its silver table; all rows if the silver table is not merged.

    A column that other shards have widened is cast back to the shard's own type. A column whose type cannot be cast
    back is omitted.

    Args:
        schema: the source table's structure.
        rows: the rows of the silver table.
    """
    if not target.merged:
        return OwnRows(rows)
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    own = {*OWN_COLUMNS, *(column.name for column in target.constants)}
    names = {column.name: name_among(types, column.name) for column in schema.columns}
    chosen = [
        f"{value} AS {quote(column.name)}"
        for column in schema.columns
        if (name := names[column.name]) is not None and (value := _value(column, name, types[name]))
    ]
    taken = {name for name in names.values() if name is not None}
    absent = tuple(name for name in types if name not in taken and name not in own)
    kept = [quote(name) for name in types if name in own or name in absent]
    return OwnRows(rows.where(target.own_rows).selectExpr(*chosen, *kept), absent)


def _value(column: Column, name: str, kind: str) -> str:
    """The SQL of a column's values in the shard's type; '' if they cannot be cast back."""
    if plain_type(kind) == held_type(column):
        return quote(name)
    if held_type(column).startswith(_NOT_CAST) or plain_type(kind).startswith(_NOT_CAST):
        return ""
    return f"try_cast({quote(name)} AS {silver_type(column)})"


def scratch_constants(target: Target) -> tuple[tuple[str, str], ...]:
    """The constant columns of a shard's rows in a replay table, in the form of a route's extracted columns."""
    return (*target.route.extracted, *(((SHARD, str(target.shard)),) if target.merged else ()))
