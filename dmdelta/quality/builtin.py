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
from dmdelta.model.schema import ForeignKey, TableSchema
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


def orphans(rows: DataFrame, parents: DataFrame, key: ForeignKey) -> DataFrame:
    """Rows that refer to a row which `parents` lacks; rows with a NULL in the foreign key refer to none."""
    refers = " AND ".join(f"{quote(own)} IS NOT NULL" for own, _ in key.columns)
    return referring(rows.where(refers), parents, key, "left_anti")


def count_orphans(
    rows: DataFrame, parents: DataFrame, quarantined: DataFrame | None, key: ForeignKey
) -> tuple[int, int, int]:
    """By one query: rows that refer to something, those whose parent does not exist, and those whose is quarantined."""
    marked = rows.where(" AND ".join(f"{quote(own)} IS NOT NULL" for own, _ in key.columns))
    for mark, others in (("_dm_in_silver", parents), ("_dm_quarantined", quarantined)):
        if others is None:
            marked = marked.withColumn(mark, F.lit(None).cast("boolean"))
            continue
        names = [f"{mark}_{n}" for n in range(len(key.columns))]
        keys = [f"{quote(theirs)} AS {name}" for name, (_, theirs) in zip(names, key.columns, strict=True)]
        same = [F.col(quote(own)) == F.col(name) for name, (own, _) in zip(names, key.columns, strict=True)]
        marked = marked.join(others.selectExpr(*keys).distinct().selectExpr("*", f"true AS {mark}"), same, "left")
    (counts,) = marked.selectExpr(
        "count(*) AS evaluated",
        "count_if(_dm_in_silver IS NULL AND _dm_quarantined IS NULL) AS orphans",
        "count_if(_dm_in_silver IS NULL AND _dm_quarantined) AS waiting",
    ).collect()
    return counts["evaluated"], counts["orphans"], counts["waiting"]


def referring(rows: DataFrame, parents: DataFrame, key: ForeignKey, join: str) -> DataFrame:
    """Rows that refer to one of `parents` (`left_semi`), or to none of them (`left_anti`)."""
    referenced = parents.selectExpr(*(f"{quote(theirs)} AS _dm_p{n}" for n, (_, theirs) in enumerate(key.columns)))
    same = [F.col(quote(own)) == F.col(f"_dm_p{n}") for n, (own, _) in enumerate(key.columns)]
    return rows.join(referenced, same, join)


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
