"""Risks of lost or duplicate rows in a running task: one warning for each, with the tables and the next step."""

from types import SimpleNamespace

import pytest

from dmdelta.engine.task.risks import SelectedTables, plan_risks, shard_risks
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.preflight.finding import Level
from dmdelta.source.preflight.shard_checks import ShardFacts

ID = Column("id", "int", nullable=False)


def spec(*, safe=False, sink=True, sink_safe=False, mode=None):
    target = SimpleNamespace(safe_mode=sink_safe) if sink else None
    return SimpleNamespace(syncer=SimpleNamespace(safe_mode=safe), sink=target, shard_mode=mode)


def shard(source, *, key=("id",), apart=(), auto=None):
    return ShardFacts(source, TableSchema("d", "t1", (ID,), key), ("shop", "t"), apart, auto)


def tables(*shards, keyless=(), **targets):
    named = {("s1", ("d", name)): ("shop", target) for name, target in targets.items()}
    return SelectedTables(named, frozenset(("s1", ("d", name)) for name in keyless), shards)


def found(spec, selected, keys=None):
    return {(risk.concerns, risk.finding.name): risk.finding for risk in plan_risks(spec, selected, keys)}


@pytest.mark.parametrize(
    ("settings", "merged", "warns", "replaces", "names"),
    [
        ({"safe": True, "sink": False}, True, True, False, False),
        ({"safe": True}, True, True, True, True),
        ({"sink_safe": True}, True, True, True, True),
        ({"sink_safe": True}, False, True, True, False),
        ({}, True, False, False, False),
    ],
)
def test_safe_mode_of_a_whole_run(settings, merged, warns, replaces, names):
    """`safe-mode: true` is slow; a sink's REPLACE deletes rows, and merged tables that may share keys are named."""
    risk = found(spec(**settings), tables(*([shard("s1")] if merged else []))).get(("spec", "safe_mode"))
    assert (risk is not None) is warns
    if risk is not None:
        assert risk.level is Level.WARN
        assert "slower" in risk.message
        assert ("REPLACE deletes other rows" in risk.message) is replaces
        assert ("shop.t" in risk.message) is names
        assert risk.message.startswith("syncer.safe-mode: true" if settings.get("safe") else "sink.safe-mode: true")
        assert "remove it" in risk.fix


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (None, "shop.log"),
        ({}, "shop.log"),
        ({("shop", "log"): True}, ""),
        ({("shop", "log"): False, ("shop", "orders"): True}, "shop.log"),
        ({("shop", "log"): True, ("shop", "orders"): False}, "shop.orders"),
        ({("shop", "orders"): False}, "shop.log, shop.orders"),
    ],
)
def test_tables_without_a_key_in_the_target(keys, named):
    """According to the target; for missing tables, or if the target does not answer, according to the source."""
    selected = tables(keyless=["log"], log="log", orders="orders")
    risk = found(spec(), selected, keys).get(("sink", "primary_key"))
    assert (f"target: {named}:" in risk.message) if named else (risk is None)
    if risk is not None:
        assert "may duplicate rows" in risk.message
        assert "ADD PRIMARY KEY" in risk.fix
    assert ("sink", "primary_key") not in found(spec(sink=False), selected, keys)


@pytest.mark.parametrize(
    ("shards", "warns"),
    [
        ([shard("s1"), shard("s2")], True),
        ([shard("s1", auto="id"), shard("s2", auto="id")], True),
        ([shard("s1", apart=(("of", "1"),)), shard("s2", apart=(("of", "2"),))], False),
        ([shard("s1", apart=(("of", "1"),)), shard("s2", apart=(("of", "1"),))], True),
        ([shard("s1", key=()), shard("s2", key=())], False),
        ([shard("s1")], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("safe", [False, True])
def test_shards_with_the_same_keys_in_the_target(shards, warns, safe):
    """With any keys, unless a route distinguishes the shards: silver keeps both rows, the target has one."""
    risk = found(spec(safe=safe), tables(*shards)).get(("sink", "shard_keys"))
    assert (risk is not None) is warns
    if risk is not None:
        assert "shop.t" in risk.message
        assert ("stops the sink" in risk.message) is not safe
        assert "unique across the shards" in risk.fix
    assert ("sink", "shard_keys") not in found(spec(sink=False, safe=safe), tables(*shards))


def test_no_warnings():
    """Keys everywhere, no merged table, no safe mode."""
    assert plan_risks(spec(), tables(orders="orders"), {("shop", "orders"): True}) == []


def test_warnings_of_merged_tables_at_the_start():
    """Keys that AUTO_INCREMENT assigns in several shards, with the tables; passed checks are not logged."""
    (risk,) = shard_risks(spec(), tables(shard("s1", auto="id"), shard("s2", auto="id")))
    assert (risk.concerns, risk.finding.name) == ("shards", "auto_increment_ID")
    assert "s1's d.t1 (id), s2's d.t1 (id)" in risk.finding.message
    assert shard_risks(spec(), tables(shard("s1"), shard("s2"))) == []
