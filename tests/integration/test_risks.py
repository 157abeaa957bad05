"""Risks of a task on real servers, without Spark: what the catalogs of source and target say."""

from types import SimpleNamespace

import pytest

from dmdelta.config import SinkConfig
from dmdelta.config.routes import RouteRule
from dmdelta.engine.inspect.preflight import _target_findings
from dmdelta.engine.task.risks import read_selected
from dmdelta.rules import BlockAllowList, Routes, SourceRules
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Level
from tests.support.relaying import endpoint_of
from tests.support.sinking import target_of


@pytest.fixture(params=["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)])
def server(request):
    return request.getfixturevalue(request.param)


def test_what_check_says_of_the_tables_of_source_and_target(server):
    """Merged tables, and tables without a key: as the target has them, and as it would get them."""
    database = server.fresh_database("risks")
    server.execute(
        "CREATE TABLE t_1 (id INT PRIMARY KEY)",
        "CREATE TABLE t_2 (id INT PRIMARY KEY)",
        "CREATE TABLE fresh (v INT)",
        "CREATE TABLE helped (v INT NOT NULL)",
        "CREATE TABLE bare (id INT PRIMARY KEY)",
        "CREATE TABLE keyed (id INT PRIMARY KEY)",
        database=database,
    )
    there = server.fresh_database("there")
    server.execute(
        "CREATE TABLE helped (v INT NOT NULL, UNIQUE (v))",
        "CREATE TABLE bare (id INT)",
        "CREATE TABLE keyed (id INT PRIMARY KEY)",
        database=there,
    )
    merges = {"schema-pattern": database, "table-pattern": "t_*", "target-schema": there, "target-table": "t"}
    rest = {"schema-pattern": database, "target-schema": there}
    routes = Routes.from_config({name: RouteRule.model_validate(r) for name, r in {"m": merges, "r": rest}.items()})
    rules = SourceRules("s1", BlockAllowList(do_dbs=(database,)), routes)
    with open_connection(endpoint_of(server)) as connection:
        selected = read_selected(connection, rules)
    assert set(selected.targets.values()) == {(there, name) for name in ("t", "fresh", "helped", "bare", "keyed")}
    assert {name for _, name in selected.keyless} == {(database, "fresh"), (database, "helped")}
    target = target_of(server)
    sink = SinkConfig(kind="mysql", host=target.host, port=target.port, user=target.user, password=target.password)
    spec = SimpleNamespace(syncer=SimpleNamespace(safe_mode=False), sink=sink, shard_mode=None)
    findings = {finding.check: finding for finding in _target_findings(spec, selected)}
    assert not any(finding.stops for finding in findings.values())
    assert f"target: {there}.bare, {there}.fresh:" in findings["primary_key"].message
    assert f"shards of {there}.t may have" in findings["shard_keys"].message
    assert {findings[name].level for name in ("primary_key", "shard_keys")} == {Level.WARN}
