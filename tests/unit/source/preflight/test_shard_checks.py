"""Checks of shards before a task runs."""

import pytest

from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.preflight.finding import Level
from dmdelta.source.preflight.shard_checks import ShardFacts, shard_findings

KEY = Column("id", "int", nullable=False)
SAME = (KEY, Column("v", "int"))


def shard(source, columns=SAME, apart=(), auto=None):
    return ShardFacts(source, TableSchema("d", "t", columns, ("id",)), ("shop", "t"), apart, auto)


@pytest.mark.parametrize(
    ("columns", "mode", "level", "text"),
    [
        (SAME, "pessimistic", Level.PASS, "compatible"),
        (SAME, None, Level.PASS, "compatible"),
        ((*SAME, Column("w", "int")), "pessimistic", Level.WARN, "merged into shop.t: only one has column w"),
        ((*SAME, Column("w", "int")), None, Level.FAIL, "only one has column w"),
        ((*SAME, Column("w", "int")), "optimistic", Level.PASS, "compatible"),
        ((KEY, Column("V", "bigint")), "optimistic", Level.PASS, "compatible"),
        ((KEY, Column("v", "bigint")), "pessimistic", Level.WARN, "v is INT in one, BIGINT in the other"),
        ((KEY, Column("v", "varchar")), "optimistic", Level.FAIL, "v is INT in one, STRING in the other"),
    ],
)  # fmt: skip
def test_structures(columns, mode, level, text):
    """The shard mode must be able to merge them."""
    found = shard_findings([shard("s1"), shard("s2", columns)], mode)[0]
    assert (found.name, found.level) == ("schema_of_shard_tables", level)
    assert text in found.message


def test_auto_increment_keys():
    """They conflict between shards unless the route extracts a column that identifies the shard."""
    both = [shard("s1", auto="id"), shard("s2", auto="id")]
    found = shard_findings(both, "pessimistic")[1]
    assert (found.name, found.level) == ("auto_increment_ID", Level.WARN)
    assert "s1's d.t (id), s2's d.t (id)" in found.message
    apart = [shard("s1", auto="id", apart=(("of", "1"),)), shard("s2", auto="id", apart=(("of", "2"),))]
    assert shard_findings(apart, "pessimistic")[1].level is Level.PASS
    assert shard_findings([], "pessimistic") == []
