"""Risks of a task on real servers, without Spark, according to the catalogs of source and target."""

from types import SimpleNamespace

import pytest

from dmdelta.config import SinkConfig
from dmdelta.config.routes import RouteRule
from dmdelta.engine.inspect.preflight import _target_findings
from dmdelta.engine.task.risks import read_selected
from dmdelta.engine.task.target_checks import check_target
from dmdelta.rules import BlockAllowList, Routes, SourceRules
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Level
from tests.support.relaying import endpoint_of
from tests.support.sinking import target_of


@pytest.fixture(params=["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)])
def server(request):
    return request.getfixturevalue(request.param)


def test_what_check_reports_of_the_tables_of_source_and_target(server):
    """Merged tables, and tables without a key: as they are in the target, and as the sink would create them."""
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


def test_what_check_reports_of_tables_that_do_not_fit(server):
    """Structures of both catalogs are compared by name; the server must know the session variables of the spec."""
    database, there = server.fresh_database("risks"), server.fresh_database("there")
    server.execute(
        "CREATE TABLE fits (id INT PRIMARY KEY, v VARCHAR(9), g INT AS (LENGTH(v)) STORED)",
        "CREATE TABLE lacking (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE own (id INT PRIMARY KEY)",
        "CREATE TABLE narrow (id BIGINT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4)",
        database=database,
    )
    server.execute(
        "CREATE TABLE fits (id BIGINT AUTO_INCREMENT PRIMARY KEY, v TEXT, g INT AS (LENGTH(v)) STORED, "
        "at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, more INT NOT NULL DEFAULT 7)",
        "CREATE TABLE lacking (id INT PRIMARY KEY)",
        "CREATE TABLE own (id INT PRIMARY KEY, needed INT NOT NULL)",
        "CREATE TABLE narrow (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET latin1)",
        database=there,
    )
    routes = Routes.from_config({"r": RouteRule.model_validate({"schema-pattern": database, "target-schema": there})})
    with open_connection(endpoint_of(server)) as connection:
        selected = read_selected(connection, SourceRules("s1", BlockAllowList(do_dbs=(database,)), routes))
    target = target_of(server)
    account = {"kind": "mysql", "host": target.host, "port": target.port, "user": "sink", "password": target.password}
    sink = SinkConfig.model_validate({**account, "session": {"lock_wait_timeout": 7}})
    raised = [(one.name, one.level, one.message) for one in check_target(sink, selected).findings if one.fix]
    assert [(name, level) for name, level, _ in raised] == [
        ("table_schema", Level.FAIL),
        ("table_schema", Level.FAIL),
        ("column_type", Level.WARN),
        ("character_set", Level.WARN),
    ]
    named = (f"{there}.lacking.v", f"{there}.own.needed", f"{there}.narrow.id", f"{there}.narrow.v")
    assert [message.rpartition(": ")[2] for *_, message in raised] == list(named)
    wrong = SinkConfig.model_validate({**account, "session": {"no_such_variable": "x"}})
    (found,) = check_target(wrong, selected).findings
    assert (found.name, found.level) == ("connection", Level.FAIL)
    assert "session" in found.fix
