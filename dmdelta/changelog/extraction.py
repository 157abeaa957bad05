"""SQL expressions that extract typed columns from the VARIANT of a row image, built without Spark."""

import re

from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, ZERO_DATE_TYPES, silver_columns, silver_type
from dmdelta.model.schema import Column, ConstantColumn, StoredColumn, TableSchema
from dmdelta.model.spark_sql import literal, quote

_FIRST_DAY = {"date": "DATE'0001-01-01'", "datetime": "TIMESTAMP_NTZ'0001-01-01 00:00:00'"}
_PLAIN_KEY = re.compile(r"[^.\[]+")


def variant_path(name: str) -> str | None:
    """The path of a field in an object (Spark's `VariantPathParser`), None if its grammar cannot express the name."""
    if _PLAIN_KEY.fullmatch(name):
        return f"$.{name}"
    for mark in ("'", '"'):
        if mark not in name and "?" not in name:
            return f"$[{mark}{name}{mark}]"
    return None


def extracted(image: str, column: Column, *, strict: bool = True) -> str:
    """The SQL expression of a column's value in the VARIANT `image`, without an alias.

    Dates that Delta cannot hold are text in the image and become NULL.

    Args:
        strict: any other value that does not have the column's type fails the query; False: it becomes NULL. A session
            that pushes extractions into the scan computes them for the rows of other tables, too.
    """
    if isinstance(column, ConstantColumn):
        return literal(column.value)
    path = variant_path(column.name)
    if path is None:
        return converted(f"CAST({image} AS MAP<STRING, VARIANT>)[{literal(column.name)}]", column, strict=strict)
    return converted(image, column, path, strict=strict)


def converted(variant: str, column: Column, path: str = "$", *, strict: bool = True) -> str:
    """The SQL expression of a column's value at `path` in a VARIANT, without an alias; `strict` as in `extracted`."""
    if isinstance(column, StoredColumn):
        return f"CAST({converted(variant, column.own, path, strict=strict)} AS {column.stored})"
    get = "variant_get" if strict and column.type not in ZERO_DATE_TYPES else "try_variant_get"
    value = f"{get}({variant}, {literal(path)}, {literal(silver_type(column))})"
    # Spark parses text of the year 0 as a date; Python and most readers cannot.
    return f"IF({value} >= {_FIRST_DAY[column.type]}, {value}, NULL)" if column.type in _FIRST_DAY else value


def tells(names: str, column: Column) -> str:
    """Whether an image contains a value of a column (SQL); `names` are its columns, NULL for all."""
    if isinstance(column, ConstantColumn):
        return "true"
    return f"{names} IS NULL OR array_contains({names}, {literal(column.name)})"


def keys_of(schema: TableSchema) -> tuple[Column, ...]:
    """The key columns in the key's order."""
    by_name = {column.name: column for column in schema.columns}
    return tuple(by_name[name] for name in schema.primary_key)


def own_values() -> tuple[str, str]:
    """The expressions for `_dm_version` and `_dm_committed_at` from a bronze row."""
    version = f"named_struct('epoch', epoch, 'seq', seq, 'row', row) AS {VERSION}"
    return version, f"committed_at AS {COMMITTED_AT}"


def column_list(schema: TableSchema) -> str:
    """All columns of the silver table, quoted, separated by commas."""
    return ", ".join(quote(name) for name in silver_columns(schema))
