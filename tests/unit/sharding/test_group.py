"""The shards of a merged table, and the columns and types that each still requires."""

import pytest

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.sharding import Operation, Shard, Verb, Waiting
from dmdelta.sharding.group import ShardingGroup

T = TableSchema("d", "t", (Column("id", "int"), Column("V", "int")), ("id",))
ONE, TWO = Shard("s1", "d", "t1"), Shard("s1", "d", "t2")


def waiting(offset):
    (effect,) = statement_effects("ALTER TABLE t ADD c INT", "d", lambda _: T)
    assert isinstance(effect, Altered)
    return Waiting(Position(1, "b.000001", offset), "ALTER TABLE t ADD c INT", effect)


@pytest.mark.parametrize(
    ("operation", "done"),
    [
        (Operation(Verb.ADD, "v", type="INT"), True),
        (Operation(Verb.ADD, "v", type="BIGINT"), False),
        (Operation(Verb.ADD, "x", type="INT"), False),
        (Operation(Verb.DROP, "x"), True),
        (Operation(Verb.DROP, "v"), False),
        (Operation(Verb.RENAME, "v", was="old"), True),
        (Operation(Verb.RENAME, "v", was="id"), False),
        (Operation(Verb.RENAME, "x", was="old"), False),
        (Operation(Verb.RENAME, "x", was="v"), False),
        (Operation(Verb.RETYPE, "v", type="INT"), True),
        (Operation(Verb.RETYPE, "v", type="BIGINT"), False),
        (Operation(Verb.RETYPE, "x", type="BIGINT"), True),
    ],
)
def test_what_a_shard_no_longer_needs(operation, done):
    """Determined by its structure; the type of a column that it does not have is irrelevant."""
    assert operation.is_done(T) is done


def test_shards_wait_in_the_order_in_which_they_started_to_wait():
    """Waiting again before the same statement keeps the place; another statement goes to the end."""
    group = ShardingGroup()
    group.set_schema(ONE, T)
    group.waits(TWO, waiting(100))
    assert list(group.waiting) == [TWO]
    group.waits(ONE, waiting(50))
    assert list(group.waiting) == [TWO, ONE]
    group.waits(TWO, waiting(100))
    assert list(group.waiting) == [TWO, ONE]
    group.waits(TWO, waiting(200))
    assert list(group.waiting) == [ONE, TWO]
    assert group.members[TWO].schema == T


def test_a_shard_stops_waiting():
    """With a structure, or when it is dropped."""
    group = ShardingGroup()
    group.waits(ONE, waiting(100))
    group.waits(TWO, waiting(100))
    group.set_schema(ONE, T)
    assert list(group.waiting) == [TWO]
    group.remove_shard(TWO)
    group.remove_shard(TWO)
    assert list(group.members) == [ONE]


def test_the_name_of_a_shard_is_unambiguous():
    """As in DM's locks, with backticks in names doubled."""
    assert str(Shard("s1", "a`b", "c.d")) == "s1-`a``b`.`c.d`"
