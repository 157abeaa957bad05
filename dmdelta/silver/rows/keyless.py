"""Tables without a key: a multiset of rows, each identified by the (epoch, seq, row) of the event that wrote it.

Which of several equal rows was deleted is unknown and does not matter: silver deletes as many as the source did, the
oldest first. Each full row value has a net count: rows inserted minus rows deleted.
"""

from pyspark.sql import DataFrame

from dmdelta.changelog.extraction import column_list, extracted, own_values
from dmdelta.changelog.row_text import row_text
from dmdelta.ddl.types.silver_types import COMMITTED_AT, SHARD, VERSION, silver_type
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote


def identity(schema: TableSchema) -> str:
    """A hash of a row's values (SQL): equal for rows that are equal in every column, including NULLs."""
    return f"sha2({row_text({column.name: silver_type(column) for column in schema.columns})}, 256)"


def keyless_changes(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """Every row that was added (`_dm_sign` 1) or removed (-1), typed, with its identity; an update is one of each."""

    def side(image: str, ops: str, sign: int) -> DataFrame:
        columns = [f"{extracted(image, column)} AS {quote(column.name)}" for column in schema.columns]
        return changes.where(f"op IN ({ops})").selectExpr(*columns, *own_values(), f"{sign} AS _dm_sign")

    both = side("after", "'insert', 'update'", 1).unionByName(side("before", "'delete', 'update'", -1))
    return both.selectExpr("*", f"{identity(schema)} AS _dm_identity")


def merge_keyless(changes: DataFrame, schema: TableSchema, table: str) -> str:
    """The MERGE statement of a batch. Creates the temporary view that it reads.

    Rows that are added and removed within the batch cancel out. A row whose version exists in silver is not added
    again. A delete removes only rows that are older than itself.
    """
    changes.createOrReplaceTempView("dmdelta_keyless")
    columns = column_list(schema)
    values = ", ".join(f"_dm_source.{quote(column.name)}" for column in schema.columns)
    own = "".join(
        f" AND _dm_target.{quote(c.name)} = _dm_source.{quote(c.name)}" for c in schema.columns if c.name == SHARD
    )
    return f"""MERGE INTO {table} AS _dm_target USING ({net_keyless("dmdelta_keyless", schema, table)}) AS _dm_source
        ON _dm_target.{VERSION} = _dm_source.{VERSION}{own}
        WHEN MATCHED AND _dm_source._dm_op = 'delete' THEN DELETE
        WHEN NOT MATCHED AND _dm_source._dm_op = 'insert'
        THEN INSERT ({columns}) VALUES ({values}, _dm_source.{VERSION}, _dm_source.{COMMITTED_AT})"""


def net_keyless(changes: str, schema: TableSchema, table: str) -> str:
    """The query for the rows that a batch adds to a table, and for those of the table that it removes, with `_dm_op`.

    Args:
        changes: the view of `keyless_changes`.
        table: the table, or a view of its rows.
    """
    columns = column_list(schema)
    added = f"""SELECT {columns}, 'insert' AS _dm_op FROM (
        SELECT *, sum(IF(_dm_sign < 0, 1, 0)) OVER (PARTITION BY _dm_identity) AS _dm_deletes,
            row_number() OVER (PARTITION BY _dm_identity, _dm_sign ORDER BY {VERSION}) AS _dm_nth FROM {changes})
        WHERE _dm_sign > 0 AND _dm_nth > _dm_deletes"""
    deletes = f"""SELECT _dm_identity, sum(-_dm_sign) AS _dm_count, max(IF(_dm_sign < 0, {VERSION}, NULL)) AS _dm_newest
        FROM {changes} GROUP BY _dm_identity HAVING sum(-_dm_sign) > 0"""
    removed = f"""SELECT {columns}, 'delete' AS _dm_op FROM (
        SELECT _dm_target.*, _dm_net._dm_count,
            row_number() OVER (PARTITION BY _dm_target._dm_identity ORDER BY _dm_target.{VERSION}) AS _dm_nth
        FROM (SELECT *, {identity(schema)} AS _dm_identity FROM {table}) AS _dm_target JOIN ({deletes}) AS _dm_net
        ON _dm_target._dm_identity = _dm_net._dm_identity AND _dm_target.{VERSION} < _dm_net._dm_newest)
        WHERE _dm_nth <= _dm_count"""
    return f"{added} UNION ALL {removed}"
