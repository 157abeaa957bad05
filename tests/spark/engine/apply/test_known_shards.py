"""The structures with which a run registers the shards that it finds."""

import pytest

from dmdelta.checkpoint import FlushReason, Point, StoredPoints, TablePoint
from dmdelta.engine.apply.known_shards import join_known_shards
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Coordination, Mode, Shard
from tests.support.changelog import SOURCE
from tests.support.sharded_changelog import COLUMNS, MERGED, ONE, TWO, Shards


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        (FlushReason.INTERVAL, {ONE: ["id", "v"], TWO: ["id", "v", "c"]}),
        (FlushReason.STOP, {ONE: ["id", "v"], TWO: ["id", "v"]}),
    ],
)
def test_a_shard_that_silver_has_more_of_than_the_checkpoint(spark, lakehouse, reason, found):
    """After a crash it has the structure of its newest commit, also if a statement was the last that silver applied."""
    shards = Shards(spark, lakehouse, ONE, TWO)
    shards.options["shards"] = Coordination(Mode.OPTIMISTIC)
    for table in (ONE, TWO):
        shards.log.insert({"id": 1, "v": "a"}, table)
    shards.apply()
    end = shards.log.position
    points = {
        name: TablePoint(*name, Point(end), 1, TableSchema(*name, COLUMNS, ("id",)).to_json()) for name in (ONE, TWO)
    }
    shards.log.ddl("ALTER TABLE items_2 ADD c INT", TWO)
    shards.apply()
    again = Coordination(Mode.OPTIMISTIC)
    context = shards.log.request(end, end, name=ONE, **{**shards.options, "shards": again}).context
    join_known_shards(spark, context, StoredPoints(1, reason, Point(end), points, Point(end)), [])
    structures = again.structures(MERGED)
    assert found == {name: [column.name for column in structures[Shard(SOURCE, *name)].columns] for name in (ONE, TWO)}
