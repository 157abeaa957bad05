"""Keys that shards of a merged table share: each keeps its row, and the run says how many there are."""

from dataclasses import dataclass

from dmdelta.changelog.extraction import extracted, keys_of
from dmdelta.ddl.types.silver_types import SHARD, silver_type
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.logging import get_logger
from dmdelta.model.change import Op
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal, quote
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.rows.commits import Batch
from dmdelta.silver.table.target import Target

log = get_logger(__name__)
SHOWN = 5
"""Other shards that are named."""


@dataclass(frozen=True, slots=True)
class Clashes:
    """
    Attributes:
        keys: keys of a batch's new rows that rows of other shards have, too.
        shards: some of those shards.
    """

    keys: int
    shards: tuple[str, ...]


def look_for_clashes(work: ApplyContext, batch: Batch) -> int:
    """Say which keys of a batch other shards have; how many. Their rows stay side by side.

    Raises:
        SchemaError: the spec says that it is an error.
        LakehouseError: as `find_clashes`.
    """
    target, says = work.request.target, work.request.context.rules.shard_key_clash
    new = batch.events.moves or batch.events.rows.get(Op.INSERT) or batch.events.rows.get(Op.READ)
    if not target.merged or not batch.keyed or not new or work.empty or says == "ignore":
        return 0
    found = find_clashes(batch, target)
    if not found.keys:
        return 0
    others, schema = ", ".join(found.shards), batch.schema
    if says == "error":
        raise SchemaError(
            f"{found.keys} keys of {target.shard} are keys of {others}, too",
            hint=f"the spec says shard-key-clash: error. Give the shards keys of their own, have a route extract what "
            f"tells them apart, or let silver keep both rows (shard-key-clash: warn); both are in {target.place} by "
            f"{', '.join(schema.primary_key)}",
            position=str(batch.begin),
        )
    log.warning("keys of several shards", shard=str(target.shard), keys=found.keys, others=others, table=str(schema))
    return found.keys


def find_clashes(batch: Batch, target: Target) -> Clashes:
    """The keys of a batch's new rows that other shards have, as silver is ahead of the batch.

    The columns that the route extracts tell shards apart: with them in it, a key is another one.

    Raises:
        LakehouseError: bronze or silver cannot be read.
    """
    new = f"op IN ('{Op.INSERT.value}', '{Op.READ.value}') OR key_changed"
    keys = [key for key in keys_of(batch.schema) if key.name != SHARD]
    names = [f"_dm_k{number}" for number in range(len(keys))]
    chosen = [f"{extracted('after', key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    on = [f"_dm_target.{quote(key.name)} = {name}" for key, name in zip(keys, names, strict=True)]
    on += [f"_dm_target.{quote(name)} = {literal(value)}" for name, value in target.route.extracted]
    with wrapped(target.place, "reading"):
        batch.changes.where(new).selectExpr(*chosen).distinct().createOrReplaceTempView("dmdelta_new_keys")
        # Literals, by which Delta skips files.
        (low, high) = batch.spark.sql(
            "SELECT CAST(min(_dm_k0) AS STRING), CAST(max(_dm_k0) AS STRING) FROM dmdelta_new_keys"
        ).collect()[0]
        if low is None:
            return Clashes(0, ())
        (found,) = batch.spark.sql(
            f"""SELECT count(DISTINCT {", ".join(names)}) AS keys,
            slice(array_sort(collect_set(_dm_target.{SHARD})), 1, {SHOWN}) AS shards
            FROM dmdelta_new_keys JOIN {target.place} AS _dm_target
            ON {" AND ".join(on)} AND _dm_target.{SHARD} <> {literal(str(target.shard))}
            WHERE {_between(keys[0], low, high)}"""
        ).collect()
    return Clashes(found["keys"], tuple(found["shards"]))


def _between(key: Column, low: str, high: str) -> str:
    """The rows of the merged table whose first key column is within bounds, given as text (SQL)."""
    kind = silver_type(key)
    if kind == "BINARY":
        return "true"  # no text stands for every value
    return f"_dm_target.{quote(key.name)} BETWEEN CAST({literal(low)} AS {kind}) AND CAST({literal(high)} AS {kind})"
