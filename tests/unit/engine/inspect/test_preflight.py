"""The findings of `dmdelta check` for a sink and merged shards."""

from types import SimpleNamespace

import pytest

from dmdelta.engine.inspect.preflight import _safe_mode_findings, _sink_findings
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.preflight.finding import Level
from dmdelta.source.preflight.shard_checks import ShardFacts

SHARD = ShardFacts("s1", TableSchema("d", "t1", (Column("id", "int"),), ("id",)), ("shop", "t"), (), None)


@pytest.mark.parametrize(
    ("sink", "mode", "shards", "stops"),
    [
        (True, "pessimistic", [SHARD], True),
        (True, "optimistic", [SHARD, SHARD], True),
        (True, None, [SHARD], False),
        (True, "pessimistic", [], False),
        (False, "pessimistic", [SHARD], False),
    ],
)
def test_shards_that_agree_and_a_sink(sink, mode, shards, stops):
    """The sink does not coordinate shard DDL, so it cannot be combined with merged tables and a shard-mode."""
    found = _sink_findings(SimpleNamespace(sink=object() if sink else None, shard_mode=mode), shards)
    assert [finding.level for finding in found] == [Level.FAIL] * stops
    assert all("shop.t" in finding.message and finding.fix for finding in found)


@pytest.mark.parametrize(
    ("syncer", "sink", "shards", "warns", "names"),
    [
        (True, None, [SHARD], True, False),
        (True, False, [SHARD], True, True),
        (False, True, [SHARD], True, True),
        (False, True, [], True, False),
        (False, False, [SHARD], False, False),
    ],
)
def test_safe_mode_of_a_whole_run(syncer, sink, shards, warns, names):
    """`safe-mode: true` is a warning; with a sink, it names the merged tables whose rows may replace each other."""
    target = None if sink is None else SimpleNamespace(safe_mode=sink)
    found = _safe_mode_findings(SimpleNamespace(syncer=SimpleNamespace(safe_mode=syncer), sink=target), shards)
    assert [finding.level for finding in found] == [Level.WARN] * warns
    assert any("shop.t" in finding.message for finding in found) is names
