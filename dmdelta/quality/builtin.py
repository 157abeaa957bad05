"""What is expected of every table without anybody writing it down: frames of the rows that are not so.

Each takes frames with silver's columns and gives one with the columns of the key, a row for each row that fails.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.config import SuiteConfig
from dmdelta.ddl.types.silver_types import VERSION
from dmdelta.model.position import Position
from dmdelta.model.schema import ForeignKey, TableSchema
from dmdelta.model.spark_sql import quote


def doubled_keys(rows: DataFrame, table: DataFrame, schema: TableSchema) -> DataFrame:
    """Keys of `rows` that are in `table` more than once."""
    keys = list(map(quote, schema.primary_key))
    asked = rows.select(*keys).distinct()
    return (
        table.select(*keys).join(asked, list(schema.primary_key), "left_semi").groupBy(*keys).count().where("count > 1")
    )


def keys_with_nulls(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows whose key has a NULL."""
    return rows.where(" OR ".join(f"{quote(name)} IS NULL" for name in schema.primary_key))


def versions_from_nowhere(rows: DataFrame, at: Position) -> DataFrame:
    """Rows that claim to be written by an event which the table has not come to, or by none."""
    return rows.where(
        f"{VERSION} IS NULL OR NOT ({VERSION} < named_struct('epoch', {at.epoch}, 'seq', {at.seq}L, 'row', 0))"
    )


def versions_gone_back(rows: DataFrame, before: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows that were written by an older event than the row of the same key before."""
    keys = list(schema.primary_key)
    earlier = before.selectExpr(*map(quote, keys), f"{VERSION} AS _dm_earlier")
    return rows.join(earlier, keys).where(f"{VERSION} < _dm_earlier")


def orphans(rows: DataFrame, parents: DataFrame, key: ForeignKey) -> DataFrame:
    """Rows that refer to a row which is not in `parents`; those with a NULL in the foreign key refer to nothing."""
    refers = " AND ".join(f"{quote(own)} IS NOT NULL" for own, _ in key.columns)
    return referring(rows.where(refers), parents, key, "left_anti")


def referring(rows: DataFrame, parents: DataFrame, key: ForeignKey, join: str) -> DataFrame:
    """Rows that refer to one of `parents` (`left_semi`), or to none of them (`left_anti`)."""
    there = parents.selectExpr(*(f"{quote(theirs)} AS _dm_p{n}" for n, (_, theirs) in enumerate(key.columns)))
    same = [F.col(quote(own)) == F.col(f"_dm_p{n}") for n, (own, _) in enumerate(key.columns)]
    return rows.join(there, same, join)


def broken_promises(contract: SuiteConfig, table: DataFrame, schema: TableSchema) -> list[str]:
    """What of a suite's columns and key is not so, as words."""
    there = {field.name: field.dataType for field in table.schema.fields}
    found = []
    for name, column in contract.columns.items():
        if name not in there:
            found.append(f"there is no column {name}")
        elif column.type is not None and there[name] != _parsed(table, column.type):
            found.append(f"{name} is {there[name].simpleString()}, not {column.type}")
    if contract.key is not None and contract.key != schema.primary_key:
        found.append(f"the key is {list(schema.primary_key)}, not {list(contract.key)}")
    return found


def not_null_columns(contract: SuiteConfig, there: Sequence[str]) -> list[str]:
    """The columns that a suite does not let be NULL."""
    return [name for name, column in contract.columns.items() if not column.nullable and name in there]


def _parsed(table: DataFrame, kind: str) -> object:
    """A type as Spark writes it.

    Raises:
        ParseException: it is none.
    """
    return table.sparkSession.sql(f"SELECT CAST(NULL AS {kind}) AS v").schema.fields[0].dataType
