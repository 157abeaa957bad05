"""Registers the shards of a source when a run starts, each with the structure that its rows in silver have."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dmdelta.checkpoint import ORIGIN, FlushReason, StoredPoints, TablePoint
from dmdelta.lakehouse.commits import CommitTag
from dmdelta.lakehouse.history import own_commits
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import Shard
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.lookup import structure_at


def join_known_shards(
    spark: SparkSession, context: SilverContext, stored: StoredPoints | None, catalog: Sequence[TableSchema]
) -> None:
    """Register the known shards: those with a position in the checkpoint, and those that the source has.

    Raises:
        LakehouseError: a table's history, or bronze, cannot be read.
    """
    present = {schema.name: schema for schema in catalog}
    known = stored.tables if stored is not None else {}
    shards = [name for name in {**known, **present} if context.table(name).merged and context.rules.wanted(*name)]
    points = {name: known[name] for name in shards if name in known}
    # After an orderly stop, the checkpoint has all of silver.
    crashed = stored is not None and stored.reason is not FlushReason.STOP
    ahead = _positions_ahead(spark, context, points) if crashed else {}
    structures = {name: TableSchema.from_json(point.table_info) for name, point in points.items() if point.table_info}
    for name in shards:
        target, shard = context.table(name).route.name, Shard(context.source_id, *name)
        structure = structure_at(spark, context, name, ahead[name]) if name in ahead else structures.get(name)
        if structure is not None:
            context.shards.set_schema(target, shard, structure)
        elif name in present:  # the others are dropped by then
            context.shards.set_schema(target, shard, None)
            context.shards.expects(target, shard, present[name])


def _positions_ahead(
    spark: SparkSession, context: SilverContext, points: Mapping[TableName, TablePoint]
) -> dict[TableName, Position]:
    """The positions in silver of the shards whose structure there the checkpoint does not have."""
    ahead = dict[TableName, Position]()
    for name, tag in _newest_tags(spark, context, points).items():
        stored = points[name].point.position if points[name].table_info else ORIGIN
        position = plan_position_ahead(stored, tag)
        if position is not None:
            ahead[name] = position
    return ahead


def plan_position_ahead(stored: Position, newest: CommitTag) -> Position | None:
    """Where a shard is in silver, if that is after its stored position; else None.

    Args:
        newest: the tag of the shard's newest commit.
    """
    has_statement = newest.rest is not None  # it has begun to apply the statement at its end
    if newest.end < stored or (newest.end == stored and not has_statement):
        return None
    return replace(newest.end, offset=newest.end.offset + 1) if has_statement else newest.end


def _newest_tags(
    spark: SparkSession, context: SilverContext, names: Collection[TableName]
) -> Mapping[TableName, CommitTag]:
    """The tag of each shard's newest commit, as far as the histories have them; reads each table's history once."""
    by_place = defaultdict[str, dict[str, TableName]](dict)
    for name in names:
        target = context.table(name)
        by_place[target.place][target.app] = name
    found = dict[TableName, CommitTag]()
    for place, wanted in by_place.items():
        for commit in own_commits(spark, place, None):
            if (shard := wanted.pop(commit.tag.app, None)) is not None:
                found[shard] = commit.tag
            if not wanted:
                break
    return found
