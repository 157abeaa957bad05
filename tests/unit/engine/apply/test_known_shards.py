"""Where a shard is when a run starts, if silver has more of it than the checkpoint."""

from dataclasses import replace

import pytest

from dmdelta.engine.apply.known_shards import plan_position_ahead
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.model.position import Position
from tests.support.commit_tags import tag

NEWEST = tag(3)  # at 300


def at(offset):
    return replace(NEWEST.end, offset=offset)


@pytest.mark.parametrize(
    ("stored", "rest", "position"),
    [
        (at(200), None, at(300)),
        (at(300), None, None),
        (at(400), None, None),
        (Position(2, "b.000001", 4), (), None),
        (at(200), (), at(301)),
        (at(300), (), at(301)),
        (at(300), (Change(Verb.ALTER, "DROP COLUMNS (c)"),), at(301)),
    ],
)
def test_a_shard_is_where_its_newest_commit_is(stored, rest, position):
    """After the statement at the commit's end, if silver has begun to apply it."""
    assert plan_position_ahead(stored, replace(NEWEST, rest=rest)) == position
