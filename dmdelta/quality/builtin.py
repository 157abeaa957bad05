"""The built-in expectations of every table, as data frames of the failing rows, or as their conditions (SQL).

The functions take data frames with silver's columns and return one with the key's columns: a row for each failing row.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.row_keys import same_key, with_keys
from dmdelta.config import SuiteConfig
from dmdelta.ddl.types.silver_types import VERSION, ZERO_DATE_TYPES
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote


def doubled_keys(rows: DataFrame, table: DataFrame, schema: TableSchema) -> DataFrame:
    """Keys of `rows` that occur more than once in `table`."""
    keys = list(map(quote, schema.primary_key))
    wanted = rows.select(*keys).distinct()
    return with_keys(table.select(*keys), wanted, schema).groupBy(*keys).count().where("count > 1")


def has_null_key(schema: TableSchema) -> str:
    """Whether a row has a NULL in the key that is no zero date, as SQL."""
    keys = (column.name for column in keys_of(schema) if column.type not in ZERO_DATE_TYPES)
    return " OR ".join(f"{quote(name)} IS NULL" for name in keys) or "false"


def is_from_nowhere(at: Position) -> str:
    """Whether a row's version is missing, or is at or after the table's position, as SQL."""
    return f"{VERSION} IS NULL OR NOT ({VERSION} < named_struct('epoch', {at.epoch}, 'seq', {at.seq}L, 'row', 0))"


def versions_gone_back(rows: DataFrame, before: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows with an older version than the row of the same key in `before`."""
    names = [f"_dm_k{number}" for number in range(len(schema.primary_key))]
    keys = (f"{quote(key)} AS {name}" for key, name in zip(schema.primary_key, names, strict=True))
    earlier = before.selectExpr(*keys, f"{VERSION} AS _dm_earlier")
    found = rows.join(earlier, F.expr(same_key(schema, quote, names))).where(f"{VERSION} < _dm_earlier")
    return found.select(*map(quote, rows.columns))


def broken_promises(contract: SuiteConfig, table: DataFrame, schema: TableSchema) -> list[str]:
    """Violations of a suite's contract on columns and key, as messages."""
    existing = {field.name: field.dataType for field in table.schema.fields}
    broken = []
    for name, column in contract.columns.items():
        if name not in existing:
            broken.append(f"there is no column {name}")
        elif column.type is not None and existing[name] != _parsed(table, column.type):
            broken.append(f"{name} is {existing[name].simpleString()}, not {column.type}")
    if contract.key is not None and contract.key != schema.primary_key:
        broken.append(f"the key is {list(schema.primary_key)}, not {list(contract.key)}")
    return broken


def not_null_columns(contract: SuiteConfig, existing: Sequence[str]) -> list[str]:
    """The existing columns that a suite declares as not nullable."""
    return [name for name, column in contract.columns.items() if not column.nullable and name in existing]


def _parsed(table: DataFrame, kind: str) -> object:
    """The Spark type of a type's SQL name.

    Raises:
        ParseException: there is no such type.
    """
    return table.sparkSession.sql(f"SELECT CAST(NULL AS {kind}) AS v").schema.fields[0].dataType
