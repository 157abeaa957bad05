"""Compaction: many changes of a row become one, after DM's algebra.

INSERT+UPDATE → INSERT, INSERT+DELETE → DELETE, UPDATE+UPDATE → UPDATE, UPDATE+DELETE → DELETE, DELETE+INSERT → UPDATE;
an update that changes the key is a delete of the old one and an insert of the new one. The image of the last change is
chosen whole, as VARIANT: typed columns are extracted for the survivors only.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import extracted, keys_of, own_values
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote

NET_OP = "CASE WHEN op = 'delete' THEN 'delete' WHEN first = 'insert' THEN 'insert' ELSE 'update' END"
"""Of a key whose last change is `op` and whose first is `first`."""
_ORDER = "named_struct('epoch', epoch, 'seq', seq, 'row', row, 'part', part)"


def key_names(schema: TableSchema) -> list[str]:
    """The names that a compacted frame gives to the key columns: k0, k1 and so on."""
    return [f"k{index}" for index in range(len(schema.primary_key))]


def keyed_changes(changes: DataFrame, schema: TableSchema, *, moves: bool) -> DataFrame:
    """Changes under the key that they touch: columns k0…, op, part, after, image, epoch, seq, row, committed_at.

    Args:
        moves: some updates change the key: each becomes two changes, part 0 deletes the old key, part 1 inserts.
    """
    keys, names = keys_of(schema), key_names(schema)
    rest = ("image", "epoch", "seq", "row", "committed_at")
    touched = [f"{extracted(_touched_image(), key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    if not moves:
        return changes.selectExpr(*touched, "op", "1 AS part", "after", *rest)
    left = [f"old_{name}" for name in names]
    old = [f"{extracted('before', key)} AS {name}" for key, name in zip(keys, left, strict=True)]
    halves = f"array({_change(left, 'delete', 0)}, {_change(names, 'insert', 1)})"
    parts = f"IF(key_changed, {halves}, array({_change(names)}))"
    return changes.selectExpr(*touched, *old, "op", "key_changed", "after", *rest).selectExpr(f"inline({parts})", *rest)


def compacted(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per key of `keyed_changes`: k0…, op (the net one), after, epoch, seq, row, committed_at."""
    # Ranked, not aggregated: an aggregate over VARIANT sorts all rows twice.
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
    """The rows of a compacted frame as the silver table has them, and the columns named in `also`."""
    names = dict(zip(schema.primary_key, key_names(schema), strict=True))
    columns = [
        f"{names.get(column.name) or extracted('after', column)} AS {quote(column.name)}" for column in schema.columns
    ]
    return compact.selectExpr(*columns, *own_values(), *also)


def inserted_rows(changes: DataFrame, schema: TableSchema, *also: str) -> DataFrame:
    """The rows of changes that are all inserts, as the silver table has them, and `also`: nothing to compact."""
    columns = [f"{extracted('after', column)} AS {quote(column.name)}" for column in schema.columns]
    return changes.selectExpr(*columns, *own_values(), *also)


def _touched_image() -> str:
    return "IF(op = 'delete', before, after)"


def _change(keys: Sequence[str], op: str | None = None, part: int = 1) -> str:
    """A change as a struct (SQL): under `keys`, as it is in the log or as one half of a key change."""
    values = [f"'k{index}', {key}" for index, key in enumerate(keys)]
    values += [f"'op', '{op}'" if op else "'op', op", f"'part', {part}"]
    values += ["'after', CAST(NULL AS VARIANT)" if op == "delete" else "'after', after"]
    return f"named_struct({', '.join(values)})"
