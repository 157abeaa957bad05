"""Images with only some of the columns (binlog_row_image MINIMAL and NOBLOB): folded column by column.

A column keeps the newest value that any image of its row holds; what no image of the batch holds stays as it is in
silver. An insert begins a row anew: a column that its image lacks is NULL, whatever was there before.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dmdelta.changelog.extraction import extracted, tells
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.rows.compaction import NET_OP, key_names

_ORDER = "named_struct('epoch', epoch, 'seq', seq, 'row', row, 'part', part)"


def present(index: int) -> str:
    """The name of the column that says whether the batch tells a value of the column at `index`."""
    return f"_dm_p{index}"


def folded(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per key of `keyed_changes`: k0…, op, the other columns as v<index>, whether the batch tells them as
    _dm_p<index>, whole, epoch, seq, row, committed_at.
    """
    keys = ", ".join(key_names(schema))
    ordered = changes.selectExpr(
        "*",
        f"{_ORDER} AS at",
        f"max(IF(op = 'insert', {_ORDER}, NULL)) OVER (PARTITION BY {keys}) AS born",
        f"min_by(op, {_ORDER}) OVER (PARTITION BY {keys}) AS first",
    ).where("born IS NULL OR at >= born")
    values = []
    for index, column in _others(schema):
        told = f"after IS NOT NULL AND ({tells('image', column)})"
        value = f"named_struct('v', {extracted('after', column)})"
        values.append(f"max_by({value}, at) FILTER (WHERE {told}) AS c{index}")
    grouped = changes.sparkSession.sql(
        f"""SELECT {keys}, max_by(op, at) AS op, max_by(committed_at, at) AS committed_at, max(at) AS at,
            any_value(first) AS first, any_value(born) IS NOT NULL AS whole{"".join(", " + value for value in values)}
        FROM {{ordered}} GROUP BY {keys}""",
        ordered=ordered,
    )
    columns = [f"c{index}.v AS v{index}" for index, _ in _others(schema)]
    columns += [f"c{index} IS NOT NULL AS {present(index)}" for index, _ in _others(schema)]
    return grouped.selectExpr(
        *key_names(schema),
        f"{NET_OP} AS op",
        *columns,
        "whole",
        "at.epoch AS epoch",
        "at.seq AS seq",
        "at.row AS row",
        "committed_at",
    )


def folded_rows(fold: DataFrame, schema: TableSchema) -> DataFrame:
    """A folded frame under the silver table's column names, with _dm_op, _dm_whole and _dm_p<index>."""
    keys = dict(zip(schema.primary_key, key_names(schema), strict=True))
    columns = [
        f"{keys.get(column.name, f'v{index}')} AS {quote(column.name)}" for index, column in enumerate(schema.columns)
    ]
    also = ["op AS _dm_op", "whole AS _dm_whole", *(present(index) for index, _ in _others(schema))]
    version = "named_struct('epoch', epoch, 'seq', seq, 'row', row) AS _dm_version"
    return fold.selectExpr(*columns, version, "committed_at AS _dm_committed_at", *also)


def assignments(schema: TableSchema, undropped: Sequence[str] = ()) -> list[str]:
    """The SET clauses of a MERGE from `folded_rows`: columns that the batch does not tell stay.

    Args:
        undropped: further columns of silver, of which no batch tells anything.
    """
    told = [
        f"{quote(column.name)} = IF(_dm_source._dm_whole OR _dm_source.{present(index)}, "
        f"_dm_source.{quote(column.name)}, _dm_target.{quote(column.name)})"
        for index, column in _others(schema)
    ]
    return told + [f"{quote(name)} = IF(_dm_source._dm_whole, NULL, _dm_target.{quote(name)})" for name in undropped]


def _others(schema: TableSchema) -> list[tuple[int, Column]]:
    return [(index, column) for index, column in enumerate(schema.columns) if column.name not in schema.primary_key]
