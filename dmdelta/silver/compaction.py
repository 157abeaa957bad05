"""Compaction: many changes of a row become one, after DM's algebra.

INSERT+UPDATE → INSERT, INSERT+DELETE → DELETE, UPDATE+UPDATE → UPDATE, UPDATE+DELETE → DELETE, DELETE+INSERT → UPDATE;
an update that changes the key is a delete of the old one and an insert of the new one. The image of the last change is
chosen whole, as VARIANT: typed columns are extracted for the survivors only.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.place import quote
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.extraction import extracted, keys_of, own_values

NET_OP = "CASE WHEN last.op = 'delete' THEN 'delete' WHEN first = 'insert' THEN 'insert' ELSE 'update' END"
_ORDER = "named_struct('epoch', epoch, 'seq', seq, 'row', row, 'part', part)"


def key_names(schema: TableSchema) -> list[str]:
    """The names that a compacted frame gives to the key columns: k0, k1 and so on."""
    return [f"k{index}" for index in range(len(schema.primary_key))]


def keyed_changes(changes: DataFrame, schema: TableSchema, *, moves: bool) -> DataFrame:
    """Changes under the key that they touch: columns k0…, op, part, after, image, epoch, seq, row, committed_at.

    Args:
        moves: some updates change the key; each becomes two changes: part 0 deletes the old key, part 1 inserts.
    """
    keys = keys_of(schema)
    rest = ("image", "epoch", "seq", "row", "committed_at")
    touched = [
        f"{extracted(_touched_image(), key)} AS {name}" for key, name in zip(keys, key_names(schema), strict=True)
    ]
    if not moves:
        return changes.selectExpr(*touched, "op", "1 AS part", "after", *rest)
    moved = moves_condition(keys)
    stays = changes.selectExpr(*touched, f"IF({moved}, 'insert', op) AS op", "1 AS part", "after", *rest)
    old = [f"{extracted('before', key)} AS {name}" for key, name in zip(keys, key_names(schema), strict=True)]
    leaves = changes.where(moved).selectExpr(
        *old, "'delete' AS op", "0 AS part", "CAST(NULL AS VARIANT) AS after", *rest
    )
    return stays.unionByName(leaves)


def moves_condition(keys: tuple[Column, ...]) -> str:
    """An update that changes the key (SQL). A before image always holds the key; a partial after image may not."""
    changed = [f"{extracted('before', key)} <> {extracted('after', key)}" for key in keys]
    return f"(op = 'update' AND ({' OR '.join(changed)}))"


def compacted(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per key of `keyed_changes`: k0…, op (the net one), after, epoch, seq, row, committed_at."""
    last = f"max_by(named_struct('op', op, 'after', after, 'committed_at', committed_at), {_ORDER}) AS last"
    grouped = changes.groupBy(*key_names(schema)).agg(
        F.expr(last), F.expr(f"max({_ORDER}) AS at"), F.expr(f"min_by(op, {_ORDER}) AS first")
    )
    return grouped.selectExpr(
        *key_names(schema),
        f"{NET_OP} AS op",
        "last.after AS after",
        "at.epoch AS epoch",
        "at.seq AS seq",
        "at.row AS row",
        "last.committed_at AS committed_at",
    )


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


def inserted_rows(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows of changes that are all inserts, as the silver table has them: nothing to compact."""
    columns = [f"{extracted('after', column)} AS {quote(column.name)}" for column in schema.columns]
    return changes.selectExpr(*columns, *own_values())


def _touched_image() -> str:
    return "IF(op = 'delete', before, after)"
