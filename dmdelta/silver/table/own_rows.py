"""The rows of one shard in a merged table, converted to the shard's own types."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from dmdelta.ddl.types.silver_types import OWN_COLUMNS, silver_type
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.sharding import held_type, name_among, plain_type
from dmdelta.silver.table.target import Target

_NOT_CAST = ("BINARY", "VARIANT", "STRUCT", "ARRAY")


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
