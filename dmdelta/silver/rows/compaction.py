"""Compaction: combine all changes of a row into one, by the rules of DM's compactor.

INSERT+UPDATE → INSERT, INSERT+DELETE → DELETE, UPDATE+UPDATE → UPDATE, UPDATE+DELETE → DELETE, DELETE+INSERT → UPDATE;
an update that changes the key is a delete of the old key and an insert of the new key. The image of the last change is
selected as one VARIANT. Typed columns are extracted from the remaining changes only.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import extracted, keys_of, own_values
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote

NET_OP = "CASE WHEN op = 'delete' THEN 'delete' WHEN first = 'insert' THEN 'insert' ELSE 'update' END"
"""The net op of a key whose last change is `op` and whose first is `first` (SQL)."""
_ORDER = "named_struct('epoch', epoch, 'seq', seq, 'row', row, 'part', part)"


def key_names(schema: TableSchema) -> list[str]:
    """The names of the key columns in a compacted frame: k0, k1 and so on."""
    return [f"k{index}" for index in range(len(schema.primary_key))]


def keyed_changes(changes: DataFrame, schema: TableSchema, *, moves: bool) -> DataFrame:
    """Changes by the key that they affect: columns k0…, op, part, after, image, epoch, seq, row, committed_at.

    Args:
        moves: some updates change the key. Each becomes two changes: part 0 deletes the old key, part 1 inserts the
            new one.
    """
    keys, names = keys_of(schema), key_names(schema)
    rest = ("image", "epoch", "seq", "row", "committed_at")
    key_values = [f"{extracted(_key_image(), key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    if not moves:
        return changes.selectExpr(*key_values, "op", "1 AS part", "after", *rest)
    old_names = [f"old_{name}" for name in names]
    old_values = [f"{extracted('before', key)} AS {name}" for key, name in zip(keys, old_names, strict=True)]
    halves = f"array({change_struct(old_names, 'delete', 0)}, {change_struct(names, 'insert', 1)})"
    parts = f"IF(key_changed, {halves}, array({change_struct(names)}))"
    both = changes.selectExpr(*key_values, *old_values, "op", "key_changed", "after", *rest)
    return both.selectExpr(f"inline({parts})", *rest)


def compacted(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per key of `keyed_changes`: k0…, op (the net one), after, epoch, seq, row, committed_at."""
    # A window function instead of an aggregate: an aggregate over VARIANT sorts all rows twice.
    keys = ", ".join(key_names(schema))
    newest_first = f"(PARTITION BY {keys} ORDER BY epoch DESC, seq DESC, row DESC, part DESC"
    ranked = changes.selectExpr(
        "*",
        f"row_number() OVER {newest_first}) AS age",
        f"last_value(op) OVER {newest_first} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS first",
    )
    newest = ranked.where("age = 1")
    return newest.selectExpr(*key_names(schema), f"{NET_OP} AS op", "after", "epoch", "seq", "row", "committed_at")


def net_deletes(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """The keys (k0…) of `keyed_changes` whose last change is a delete."""
    grouped = changes.groupBy(*key_names(schema)).agg(F.expr(f"max_by(op, {_ORDER}) AS op"))
    return grouped.where("op = 'delete'").select(*key_names(schema))


def silver_rows(compact: DataFrame, schema: TableSchema, *also: str) -> DataFrame:
    """The rows of a compacted frame with the silver table's columns and the columns named in `also`."""
    names = dict(zip(schema.primary_key, key_names(schema), strict=True))
    columns = [
        f"{names.get(column.name) or extracted('after', column)} AS {quote(column.name)}" for column in schema.columns
    ]
    return compact.selectExpr(*columns, *own_values(), *also)


def inserted_rows(changes: DataFrame, schema: TableSchema, *also: str) -> DataFrame:
    """The rows of changes that need no compaction, with the silver table's columns and those named in `also`."""
    columns = [f"{extracted('after', column)} AS {quote(column.name)}" for column in schema.columns]
    return changes.selectExpr(*columns, *own_values(), *also)


def _key_image() -> str:
    return "IF(op = 'delete', before, after)"


def change_struct(keys: Sequence[str], op: str | None = None, part: int = 1) -> str:
    """A change as a struct (SQL) with the key columns `keys`: the change itself, or one half of a key change."""
    values = [f"'k{index}', {key}" for index, key in enumerate(keys)]
    values += [f"'op', '{op}'" if op else "'op', op", f"'part', {part}"]
    values += ["'after', CAST(NULL AS VARIANT)" if op == "delete" else "'after', after"]
    return f"named_struct({', '.join(values)})"
