"""Partial row images (binlog_row_image MINIMAL and NOBLOB): compacted column by column.

A column gets the newest value in any image of its row. A column that no image of the batch contains keeps its value in
silver. An insert starts a new row: a column that its image lacks is NULL, whatever silver has.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dmdelta.changelog.extraction import extracted, tells
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.rows.compaction import NET_OP, key_names

_ORDER = "named_struct('epoch', epoch, 'seq', seq, 'row', row, 'part', part)"


def present(index: int) -> str:
    """The name of the flag that is true if the batch contains a value of the column at `index`."""
    return f"_dm_p{index}"


def folded(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per key of `keyed_changes`: k0…, op, the other columns as v<index>, whether the batch contains them as
    _dm_p<index>, whole, epoch, seq, row, committed_at.
    """
    keys = ", ".join(key_names(schema))
    ordered = changes.selectExpr(
        "*",
        f"{_ORDER} AS at",
        f"max(IF(op = 'insert', {_ORDER}, NULL)) OVER (PARTITION BY {keys}) AS inserted",
        f"min_by(op, {_ORDER}) OVER (PARTITION BY {keys}) AS first",
    ).where("inserted IS NULL OR at >= inserted")
    values = []
    for index, column in _others(schema):
        contained = f"after IS NOT NULL AND ({tells('image', column)})"
        value = f"named_struct('v', {extracted('after', column)})"
        values.append(f"max_by({value}, at) FILTER (WHERE {contained}) AS c{index}")
    grouped = changes.sparkSession.sql(
        f"""SELECT {keys}, max_by(op, at) AS op, max_by(committed_at, at) AS committed_at, max(at) AS at,
            any_value(first) AS first,
            any_value(inserted) IS NOT NULL AS whole{"".join(", " + value for value in values)}
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
    """A folded frame with the silver table's column names, and _dm_op, _dm_whole and _dm_p<index>."""
    keys = dict(zip(schema.primary_key, key_names(schema), strict=True))
    columns = [
        f"{keys.get(column.name, f'v{index}')} AS {quote(column.name)}" for index, column in enumerate(schema.columns)
    ]
    also = ["op AS _dm_op", "whole AS _dm_whole", *(present(index) for index, _ in _others(schema))]
    version = "named_struct('epoch', epoch, 'seq', seq, 'row', row) AS _dm_version"
    return fold.selectExpr(*columns, version, "committed_at AS _dm_committed_at", *also)


def assignments(schema: TableSchema, undropped: Sequence[str] = ()) -> list[str]:
    """The SET clauses of a MERGE from `folded_rows`: columns that the batch does not contain keep their values.

    Args:
        undropped: further columns of silver, which no batch contains.
    """
    return [f"{quote(name)} = {value}" for name, value in assigned_values(schema, undropped).items()]


def assigned_values(schema: TableSchema, undropped: Sequence[str] = ()) -> dict[str, str]:
    """The values (SQL) that `assignments` assigns, by column."""
    values = {
        column.name: f"IF(_dm_source._dm_whole OR _dm_source.{present(index)}, "
        f"_dm_source.{quote(column.name)}, _dm_target.{quote(column.name)})"
        for index, column in _others(schema)
    }
    return values | {name: f"IF(_dm_source._dm_whole, NULL, _dm_target.{quote(name)})" for name in undropped}


def _others(schema: TableSchema) -> list[tuple[int, Column]]:
    return [(index, column) for index, column in enumerate(schema.columns) if column.name not in schema.primary_key]
