"""Tables without a key: a multiset of rows, each kept under the (epoch, seq, row) of the event that wrote it.

Of several equal rows nobody can tell which one was deleted, and it does not matter: as many go as were deleted, the
oldest first. What is known of each full row value is its net count: rows inserted less rows deleted.
"""

from pyspark.sql import DataFrame

from dmdelta.changelog.extraction import column_list, extracted, own_values
from dmdelta.ddl.types import COMMITTED_AT, SHARD, VERSION, silver_type
from dmdelta.lakehouse.place import quote
from dmdelta.model.schema import TableSchema

_VERSION_AS_TEXT = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")


def identity(schema: TableSchema) -> str:
    """The SQL of a row's value: equal for rows that are equal in every column, NULLs included."""
    return f"sha2(to_json(struct({', '.join(_comparable(c.name, silver_type(c)) for c in schema.columns)})), 256)"


def _comparable(name: str, kind: str) -> str:
    # JSON text of a timestamp stops at milliseconds.
    column = quote(name)
    return f"CAST({column} AS STRING) AS {column}" if kind in _VERSION_AS_TEXT else column


def keyless_changes(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """Every row that came (`sign` 1) or went (-1), typed, with its identity; an update is one of each."""

    def side(image: str, ops: str, sign: int) -> DataFrame:
        columns = [f"{extracted(image, column)} AS {quote(column.name)}" for column in schema.columns]
        return changes.where(f"op IN ({ops})").selectExpr(*columns, *own_values(), f"{sign} AS sign")

    both = side("after", "'insert', 'update'", 1).unionByName(side("before", "'delete', 'update'", -1))
    return both.selectExpr("*", f"{identity(schema)} AS identity")


def merge_keyless(changes: DataFrame, schema: TableSchema, table: str) -> str:
    """The MERGE statement of a batch; makes the temporary view that it reads.

    Rows added and taken away again within the batch cancel out. A row that is there already under its version is not
    added again, and a delete takes only rows that are older than itself.
    """
    changes.createOrReplaceTempView("dmdelta_keyless")
    columns = column_list(schema)
    added = f"""SELECT {columns}, 'insert' AS op FROM (
        SELECT *, sum(IF(sign < 0, 1, 0)) OVER (PARTITION BY identity) AS gone,
            row_number() OVER (PARTITION BY identity, sign ORDER BY {VERSION}) AS nth FROM dmdelta_keyless)
        WHERE sign > 0 AND nth > gone"""
    gone = f"""SELECT identity, sum(-sign) AS many, max(IF(sign < 0, {VERSION}, NULL)) AS newest
        FROM dmdelta_keyless GROUP BY identity HAVING sum(-sign) > 0"""
    removed = f"""SELECT {columns}, 'delete' AS op FROM (
        SELECT target.*, gone.many, row_number() OVER (PARTITION BY target.identity ORDER BY target.{VERSION}) AS nth
        FROM (SELECT *, {identity(schema)} AS identity FROM {table}) AS target
        JOIN ({gone}) AS gone ON target.identity = gone.identity AND target.{VERSION} < gone.newest)
        WHERE nth <= many"""
    values = ", ".join(f"source.{quote(column.name)}" for column in schema.columns)
    own = "".join(f" AND target.{quote(c.name)} = source.{quote(c.name)}" for c in schema.columns if c.name == SHARD)
    return f"""MERGE INTO {table} AS target USING ({added} UNION ALL {removed}) AS source
        ON target.{VERSION} = source.{VERSION}{own}
        WHEN MATCHED AND source.op = 'delete' THEN DELETE
        WHEN NOT MATCHED AND source.op = 'insert'
        THEN INSERT ({columns}) VALUES ({values}, source.{VERSION}, source.{COMMITTED_AT})"""
