"""Rows with the same key. A zero date is NULL in silver, also in a key, where it is equal to itself."""

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import keys_of
from dmdelta.ddl.types.silver_types import ZERO_DATE_TYPES
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote

_ROWS, _KEYS = "_dm_target", "_dm_source"


def has_key_of(one: TableSchema, other: TableSchema) -> bool:
    """Whether two structures have the same key columns, in the same order and in any letter case."""
    first, second = ([name.lower() for name in schema.primary_key] for schema in (one, other))
    return first == second


def same_key(schema: TableSchema, ours: Callable[[str], str], theirs: Sequence[str]) -> str:
    """The condition (SQL) that two rows have the same key.

    Args:
        ours: the SQL of a key column of one row, by the column's name.
        theirs: the SQL of the other row's key columns, in the key's order.
    """
    pairs = zip(keys_of(schema), theirs, strict=True)
    return " AND ".join(same_value(column, ours(column.name), their) for column, their in pairs)


def same_value(column: Column, ours: str, theirs: str) -> str:
    """The condition (SQL) that two rows have the same value in a key column."""
    return f"{ours} {'<=>' if column.type in ZERO_DATE_TYPES else '='} {theirs}"


def same_key_of(schema: TableSchema, ours: str, theirs: str) -> str:
    """The condition (SQL) that rows of two aliases, both with the key columns, have the same key."""
    return same_key(schema, of_alias(ours), list(map(of_alias(theirs), schema.primary_key)))


def of_alias(alias: str) -> Callable[[str], str]:
    """The SQL of a column of `alias`, by the column's name."""
    return lambda name: f"{alias}.{quote(name)}"


def with_keys(rows: DataFrame, keys: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows whose key is one of `keys`, a frame with the key columns."""
    return _joined(rows, keys, schema, "left_semi")


def without_keys(rows: DataFrame, keys: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows whose key is none of `keys`, a frame with the key columns."""
    return _joined(rows, keys, schema, "left_anti")


def _joined(rows: DataFrame, keys: DataFrame, schema: TableSchema, join: str) -> DataFrame:
    on = F.expr(same_key_of(schema, _ROWS, _KEYS))
    joined: DataFrame = rows.alias(_ROWS).join(keys.alias(_KEYS), on, join)
    return joined
