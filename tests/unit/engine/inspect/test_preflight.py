"""The findings of `dmdelta check` for a sink and merged shards."""

from types import SimpleNamespace

import pytest

from dmdelta.config import SinkConfig
from dmdelta.engine.inspect.preflight import _target_findings
from dmdelta.engine.task.risks import SelectedTables
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.preflight.finding import Level
from dmdelta.source.preflight.shard_checks import ShardFacts

SHARD = ShardFacts("s1", TableSchema("d", "t1", (Column("id", "int"),), ("id",)), ("shop", "t"), (), None)


@pytest.mark.parametrize("sink", [None, {"kind": "mysql", "host": "127.0.0.1", "port": 1, "user": "u"}])
def test_risks_are_findings_of_check(sink):
    """If the target does not answer, the tables without a key are those of the source."""
    spec = SimpleNamespace(
        syncer=SimpleNamespace(safe_mode=True), sink=SinkConfig(**sink) if sink else None, shard_mode=None
    )
    name = ("s1", ("d", "log"))
    selected = SelectedTables({name: ("shop", "log")}, frozenset([name]), (SHARD, SHARD))
    found = {(finding.source, finding.check): finding for finding in _target_findings(spec, selected)}
    assert found["spec", "safe_mode"].level is Level.WARN
    if sink is None:
        assert len(found) == 1
        return
    assert found["sink", "connection"].stops
    assert "shop.log" in found["sink", "primary_key"].message
    assert "shop.t" in found["sink", "shard_keys"].message
    assert all(finding.fix for finding in found.values())
