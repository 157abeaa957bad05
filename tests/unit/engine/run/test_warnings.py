"""The warnings at the start of a run, from the spec, the catalogs of its sources and the sink's target."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from dmdelta.engine.run import warnings
from dmdelta.engine.run.warnings import warn_of_risks
from dmdelta.engine.task.risks import SelectedTables
from dmdelta.engine.task.target_checks import TargetFindings
from dmdelta.errors import SourceUnavailable
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.shard_checks import ShardFacts
from tests.support.logged import logged

SHARD = ShardFacts(
    "s1", TableSchema("d", "t1", (Column("id", "int", nullable=False),), ("id",)), ("shop", "t"), (), "id"
)
LOG = ("s1", ("d", "log"))
GRANT = Finding("privilege drop", Level.FAIL, "not granted on shop", "GRANT DROP ON `shop`.* TO 'u'@'%'")
SELECTED = SelectedTables({LOG: ("shop", "log")}, frozenset([LOG]), (SHARD, SHARD))


def spec(*, sink=True, safe=False, routes=("r",), ignored=()):
    return SimpleNamespace(
        syncer=SimpleNamespace(safe_mode=safe),
        sink=SimpleNamespace(safe_mode=False) if sink else None,
        shard_mode=None,
        routes=dict.fromkeys(routes),
        is_ignored=lambda check: check in ignored,
    )


def relaying(*, endpoint="server"):
    return SimpleNamespace(source_id="s1", rules=None, task=SimpleNamespace(endpoint=endpoint))


@pytest.fixture(autouse=True)
def target(monkeypatch):
    """The findings of the sink's target: one failure, one pass, and no tables."""
    found = TargetFindings((Finding("sql_mode", Level.PASS, "own"), GRANT))
    monkeypatch.setattr(warnings, "check_target", lambda sink, selected: found)


@pytest.fixture
def catalog(monkeypatch):
    """The source's catalog, which counts how often it is read."""
    reads = []

    def read(connection, rules):
        reads.append(connection)
        return SELECTED

    monkeypatch.setattr(warnings, "open_connection", lambda endpoint, retry: nullcontext(endpoint))
    monkeypatch.setattr(warnings, "read_selected", read)
    return reads


def warned(spec, relayings):
    with logged("dmdelta.engine.run.warnings") as told:
        warn_of_risks(spec, relayings)
    assert {level for level, _, _ in told} <= {"WARNING"}
    return {(fields["concerns"], fields["check"]): fields for _, _, fields in told}


def test_each_risk_is_a_warning_with_its_fix(catalog):
    """Safe mode, tables without a key in the target, and shards whose keys may be the same."""
    told = warned(spec(safe=True), [relaying()])
    assert told.keys() == {
        ("spec", "safe_mode"),
        ("sink", "primary_key"),
        ("sink", "shard_keys"),
        ("shards", "auto_increment_ID"),
        ("sink", "privilege drop"),
    }
    assert told["sink", "privilege drop"]["fix"] == GRANT.fix
    assert "shop.log" in told["sink", "primary_key"]["finding"]
    assert "shop.t" in told["sink", "shard_keys"]["finding"]
    assert all(fields["fix"] for fields in told.values())


def test_ignored_checks_are_not_logged(catalog):
    """`ignore-checking-items`, as for `dmdelta check`."""
    told = warned(spec(safe=True, ignored=("safe_mode", "shard_keys", "privilege drop")), [relaying()])
    assert told.keys() == {("sink", "primary_key"), ("shards", "auto_increment_ID")}


def test_silver_alone_without_routes_needs_no_catalog(catalog):
    """Only the setting is logged; the start reads nothing more from the source. An archive has no catalog either."""
    assert warned(spec(sink=False, safe=True, routes=()), [relaying()]).keys() == {("spec", "safe_mode")}
    assert warned(spec(sink=False, routes=()), [relaying()]) == {}
    assert warned(spec(), [relaying(endpoint=None)]).keys() == {("sink", "privilege drop")}
    assert catalog == []


def test_a_source_that_does_not_answer_does_not_stop_the_task(monkeypatch):
    """The log has the warnings that do not need it, and states that its tables are not checked."""

    def refuse(endpoint, retry):
        raise SourceUnavailable("down", hint="none")

    monkeypatch.setattr(warnings, "open_connection", refuse)
    with logged("dmdelta.engine.run.warnings") as told:
        warn_of_risks(spec(safe=True), [relaying()])
    assert [(message, fields.get("source"), fields.get("check")) for _, message, fields in told] == [
        ("tables not checked for risks", "s1", None),
        ("preflight", None, "safe_mode"),
        ("preflight", None, "privilege drop"),
    ]
