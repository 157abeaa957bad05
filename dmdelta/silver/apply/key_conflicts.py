"""Key conflicts between shards of a merged table. Each shard keeps its row; the run counts the conflicts."""

from dataclasses import dataclass

from dmdelta.changelog.extraction import extracted, keys_of
from dmdelta.changelog.row_keys import same_value
from dmdelta.ddl.types.silver_types import SHARD, ZERO_DATE_TYPES, silver_type
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.logging import get_logger
from dmdelta.model.change import Op
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal, quote
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.table.target import Target

log = get_logger(__name__)
SHOWN = 5
"""How many of the other shards a message names."""


@dataclass(frozen=True, slots=True)
class Clashes:
    """Key conflicts between a batch and other shards.

    Attributes:
        keys: how many keys of a batch's new rows exist in other shards, too.
        shards: up to SHOWN of those shards.
    """

    keys: int
    shards: tuple[str, ...]


def check_key_clashes(work: ApplyContext, batch: Batch) -> int:
    """Count and report the keys of a batch that exist in other shards. Silver keeps the rows of all shards.

    Raises:
        SchemaError: there are some, and the spec sets `shard-key-clash: error`.
        LakehouseError: bronze or silver cannot be read.
    """
    target, policy = work.request.target, work.request.context.rules.shard_key_clash
    new = batch.events.moves or batch.events.rows.get(Op.INSERT) or batch.events.rows.get(Op.READ)
    if not target.merged or not batch.keyed or not new or work.empty or policy == "ignore":
        return 0
    clashes = _find_clashes(batch, target)
    if not clashes.keys:
        return 0
    others, schema = ", ".join(clashes.shards), batch.schema
    if policy == "error":
        raise SchemaError(
            f"{clashes.keys} keys of {target.shard} also exist in {others}",
            hint=f"the spec sets shard-key-clash: error. Use distinct keys in the shards, let a route extract a column "
            f"that distinguishes them, or keep both rows in silver (shard-key-clash: warn). Find the conflicts in "
            f"{target.place} by {', '.join(schema.primary_key)}",
            position=str(batch.begin),
        )
    log.warning(
        "shards have keys in common", shard=str(target.shard), keys=clashes.keys, others=others, table=str(schema)
    )
    return clashes.keys


def _find_clashes(batch: Batch, target: Target) -> Clashes:
    """The keys of a batch's new rows that exist in other shards, in silver before the batch.

    Columns that the route extracts are part of the comparison: keys that differ in them do not conflict.

    Raises:
        LakehouseError: bronze or silver cannot be read.
    """
    new = f"op IN ('{Op.INSERT.value}', '{Op.READ.value}') OR key_changed"
    keys = [key for key in keys_of(batch.schema) if key.name != SHARD]
    names = [f"_dm_k{number}" for number in range(len(keys))]
    chosen = [f"{extracted('after', key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    on = [same_value(key, f"_dm_target.{quote(key.name)}", name) for key, name in zip(keys, names, strict=True)]
    on += [f"_dm_target.{quote(name)} = {literal(value)}" for name, value in target.route.extracted]
    with wrapped(target.place, "reading"):
        batch.changes.where(new).selectExpr(*chosen).distinct().createOrReplaceTempView("dmdelta_new_keys")
        # Delta skips files by literals.
        (low, high) = batch.spark.sql(
            "SELECT CAST(min(_dm_k0) AS STRING), CAST(max(_dm_k0) AS STRING) FROM dmdelta_new_keys"
        ).collect()[0]
        if low is None and keys[0].type not in ZERO_DATE_TYPES:
            return Clashes(0, ())
        (row,) = batch.spark.sql(
            f"""SELECT count(DISTINCT struct({", ".join(names)})) AS keys,
            slice(array_sort(collect_set(_dm_target.{SHARD})), 1, {SHOWN}) AS shards
            FROM dmdelta_new_keys JOIN {target.place} AS _dm_target
            ON {" AND ".join(on)} AND _dm_target.{SHARD} <> {literal(str(target.shard))}
            WHERE {_between(keys[0], low, high)}"""
        ).collect()
    return Clashes(row["keys"], tuple(row["shards"]))


def _between(key: Column, low: str | None, high: str | None) -> str:
    """The condition (SQL) that the first key column is within bounds, which are given as text; None: every key is NULL,
    a zero date.
    """
    kind, column = silver_type(key), f"_dm_target.{quote(key.name)}"
    if kind == "BINARY":
        return "true"  # text does not represent every binary value
    if low is None or high is None:
        return f"{column} IS NULL"
    inside = f"{column} BETWEEN CAST({literal(low)} AS {kind}) AND CAST({literal(high)} AS {kind})"
    return f"({inside} OR {column} IS NULL)" if key.type in ZERO_DATE_TYPES else inside
