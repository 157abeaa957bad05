"""DM's prechecks of the selected tables, against real servers."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.config import RouteRule
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.rules import BlockAllowList, Routes, SourceRules
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.shard_checks import read_shards, shard_findings
from dmdelta.source.preflight.table_checks import CONNECTIONS, Reading, check_tables
from tests.support.relaying import endpoint_of
from tests.support.servers import Server, running

NAMES = {
    "tables",
    "binlog_db",
    "primary_key",
    "foreign_key",
    "conn_number",
    "privilege to load",
    "privilege lock tables",
    "table_schema",
    "table_type",
    "time_zone",
}

LOADED = Reading(loads=True, at_once=2)


@pytest.fixture(params=["mysql80", "mysql57", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


def findings(server: Server, rules: BlockAllowList) -> dict[str, Finding]:
    with open_connection(endpoint_of(server)) as connection:
        return {found.name: found for found in check_tables(connection, SourceRules(allow_list=rules), LOADED)}


def test_good_tables_pass_and_others_are_named(server: Server) -> None:
    """A table without a key and the child of a cascade are warnings with the name, unless they are ignored."""
    database = server.fresh_database("checks")
    server.execute(
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, parent INT, "
        "FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE calm (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id))",
        "CREATE TABLE by_unique (id INT NOT NULL UNIQUE)",
        "CREATE TABLE keyless (id INT)",
        "CREATE VIEW seen AS SELECT * FROM parent",
        database=database,
    )
    found = findings(server, BlockAllowList(do_dbs=(database,)))
    assert found.keys() == NAMES
    assert found["tables"].message.startswith("5 ")
    raised = {name for name, finding in found.items() if finding.level is not Level.PASS}
    assert raised == {"primary_key", "foreign_key"}
    assert f"key: {database}.keyless:" in found["primary_key"].message
    assert f"rows of {database}.child," in found["foreign_key"].message
    assert found["primary_key"].fix
    quiet = BlockAllowList(do_dbs=(database,), ignore_tables=((database, "keyless"), (database, "child")))
    assert {finding.level for finding in findings(server, quiet).values()} == {Level.PASS}
    nobody = findings(server, BlockAllowList(do_dbs=("there_is_no_such_schema",)))
    assert nobody["tables"].level is Level.WARN


def test_a_load_of_keyless_tables_needs_lock_tables(server: Server) -> None:
    """An account without LOCK TABLES fails the check, with the GRANT statement; a grant on one schema is enough."""
    database = f"{server.fresh_database('checks')} `x"
    server.execute(
        f"CREATE DATABASE {quoted_name(database)}", f"CREATE TABLE {quoted_name(database, 'keyless')} (id INT)"
    )
    server.execute(
        "CREATE USER IF NOT EXISTS 'unlocked'@'%' IDENTIFIED BY 'unlocked'",
        "GRANT SELECT, REPLICATION CLIENT ON *.* TO 'unlocked'@'%'",
    )
    account = replace(endpoint_of(server), user="unlocked", password="unlocked")
    rules = SourceRules(allow_list=BlockAllowList(do_dbs=(database,)))
    with open_connection(account) as connection:
        (found,) = (one for one in check_tables(connection, rules, LOADED) if "lock" in one.name)
        assert found.level is Level.FAIL
        assert database in found.message
        assert "GRANT LOCK TABLES" in found.fix
        assert all("lock" not in one.name for one in check_tables(connection, rules, Reading()))
        server.execute(f"GRANT LOCK TABLES ON {quoted_name(database)}.* TO 'unlocked'@'%'")
        (found,) = (one for one in check_tables(connection, rules, LOADED) if "lock" in one.name)
        assert found.level is Level.PASS


def test_mariadbs_special_tables_are_named(mariadb: Server) -> None:
    """A table with system versioning fails the check unless it is excluded; sequences are listed as not replicated."""
    database = mariadb.fresh_database("checks")
    mariadb.execute(
        "CREATE TABLE plain (id INT PRIMARY KEY)",
        "CREATE TABLE versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE SEQUENCE numbers",
        database=database,
    )
    found = findings(mariadb, BlockAllowList(do_dbs=(database,)))
    assert found["tables"].message == f"1 selected; sequences are not replicated: {database}.numbers"
    assert (found["table_type"].level, f"{database}.versioned" in found["table_type"].message) == (Level.FAIL, True)
    assert "block-allow-list" in found["table_type"].fix
    quiet = findings(mariadb, BlockAllowList(do_dbs=(database,), ignore_tables=((database, "versioned"),)))
    assert quiet["table_type"].level is Level.PASS


def test_a_column_name_reserved_by_silver_fails_the_check(server: Server) -> None:
    """The name is reported with its table; an ignored table does not count."""
    database = server.fresh_database("checks")
    server.execute(
        "CREATE TABLE taken (id INT PRIMARY KEY, _DM_Version INT)",
        "CREATE TABLE fine (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp852, g POINT, s SET('a'))",
        database=database,
    )
    found = findings(server, BlockAllowList(do_dbs=(database,)))["table_schema"]
    assert found.level is Level.FAIL
    assert f"{database}.taken._DM_Version" in found.message
    assert "fine" not in found.message
    assert found.fix
    quiet = BlockAllowList(do_dbs=(database,), ignore_tables=((database, "taken"),))
    assert findings(server, quiet)["table_schema"].level is Level.PASS


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_virtual_columns_of_a_server_in_another_zone_are_named(name: str) -> None:
    """Exactly those whose value differs for a session in UTC; it is no problem for a task that loads nothing."""
    with running(name, default_time_zone="+08:00") as server:
        database = server.fresh_database("checks")
        server.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NULL, dt DATETIME, day DATE AS (DATE(ts)) VIRTUAL, "
            "again DATE AS (DATE(day)) VIRTUAL, instant TIMESTAMP AS (dt) VIRTUAL, since DATETIME AS (FROM_UNIXTIME(id)) "
            "VIRTUAL, kept DATE AS (DATE(dt)) VIRTUAL, more INT AS (id + 1) VIRTUAL, made DATE AS (DATE(dt)) STORED)",
            "INSERT INTO t (id, ts, dt) VALUES (1, '2020-01-01 04:00:00', '2020-01-01 04:00:00')",
            database=database,
        )
        with server.connect(database=database) as there, there.cursor() as cursor:
            cursor.execute("SELECT *, UNIX_TIMESTAMP(instant) AS instant FROM t")
            names = [column[0] for column in cursor.description]
            written = dict(zip(names, cursor.fetchone(), strict=True))
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("SELECT *, UNIX_TIMESTAMP(instant) AS instant FROM t")
            read = dict(zip(names, cursor.fetchone(), strict=True))
        differing = {column for column in names if written[column] != read[column]} - {"ts"}
        rules = SourceRules(allow_list=BlockAllowList(do_dbs=(database,)))
        with open_connection(endpoint_of(server)) as connection:
            (loaded,) = (one for one in check_tables(connection, rules, LOADED) if one.name == "time_zone")
            (followed,) = (one for one in check_tables(connection, rules, Reading()) if one.name == "time_zone")
        assert (loaded.level, followed.level) == (Level.WARN, Level.PASS)
        assert "+08:00" in loaded.message
        assert "+08:00" in followed.message
        assert (
            set(re.findall(rf"{database}\.t\.(\w+)", loaded.message))
            == differing
            == {"day", "again", "instant", "since"}
        )


def test_a_load_counts_its_readers(mysql80: Server) -> None:
    """One connection per concurrent chunk, two where the table has no key."""
    database = mysql80.fresh_database("checks")
    mysql80.execute("CREATE TABLE keyed (id INT PRIMARY KEY)", "CREATE TABLE keyless (id INT)", database=database)
    rules = SourceRules(allow_list=BlockAllowList(do_dbs=(database,)))
    said = {}
    with open_connection(endpoint_of(mysql80)) as connection:
        for at_once in (0, 1, 8, 500, None):
            found = {one.name: one for one in check_tables(connection, rules, Reading(True, at_once))}["conn_number"]
            said[at_once] = found
    assert f"up to {CONNECTIONS}" in said[0].message
    assert f"up to {CONNECTIONS + 2}" in said[1].message
    assert f"up to {CONNECTIONS + 9}" in said[8].message
    assert "each task that the cluster runs" in said[None].message
    assert [found.level is Level.WARN for found in said.values()] == [False, False, False, True, False]
    assert "SET GLOBAL max_connections" in said[500].fix


def test_schemas_excluded_from_the_log_fail_the_check_and_the_run(tmp_path: Path, capsys) -> None:
    """Exit 1 of `check` and 3 of `run`, with the schema; a check that is ignored by name does not count."""
    with running("mysql80", binlog_ignore_db="hidden", max_connections="10") as server:
        server.execute("CREATE DATABASE hidden", "CREATE DATABASE shown")
        server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database="hidden")
        server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database="shown")
        found = findings(server, BlockAllowList())
        assert (found["binlog_db"].level, found["conn_number"].level) == (Level.FAIL, Level.PASS)
        assert "hidden" in found["binlog_db"].message
        assert "shown" not in found["binlog_db"].message

        spec = tmp_path / "task.yml"
        source = {"source-id": "s", "host": server.host, "port": server.port}
        account = {"user": server.user, "password": server.password}
        content = {"name": "t", "sources": [{**source, **account}], "lakehouse": {"root": str(tmp_path / "lake")}}
        spec.write_text(yaml.safe_dump(content))
        assert execute(["run", str(spec), "--until-caught-up"]) == 3
        assert "hidden" in capsys.readouterr().err
        assert execute(["check", str(spec), "--json"]) == 1
        assert {row["check"] for row in json.loads(capsys.readouterr().out)} >= NAMES - {
            "privilege to load",
            "privilege lock tables",
        }
        spec.write_text(yaml.safe_dump({**content, "ignore-checking-items": ["binlog_db", "binlog_bd"]}))
        assert execute(["check", str(spec), "--json"]) == 0
        checks = {row["check"]: row["level"] for row in json.loads(capsys.readouterr().out)}
        assert "binlog_db" not in checks
        assert checks["binlog_bd"] == "warn"


def test_shards_are_checked_together(server: Server) -> None:
    """Different structures, and auto-increment keys, of tables that the routes merge."""
    database = server.fresh_database("checks")
    server.execute(
        "CREATE TABLE t_1 (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        "CREATE TABLE t_2 (id INT AUTO_INCREMENT PRIMARY KEY, v INT, w INT)",
        "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY)",
        database=database,
    )
    rule = {"schema-pattern": database, "table-pattern": "t_*", "target-schema": "d", "target-table": "t"}
    routes = Routes.from_config({"r": RouteRule.model_validate(rule)})
    rules = SourceRules("s1", BlockAllowList(do_dbs=(database,)), routes)
    with open_connection(endpoint_of(server)) as connection:
        shards = read_shards(connection, rules)
    assert [(shard.schema.table, shard.auto_increment) for shard in shards] == [("t_1", "id"), ("t_2", "id")]
    raised = {found.name: found.level for found in shard_findings(shards, "optimistic")}
    assert raised == {"schema_of_shard_tables": Level.PASS, "auto_increment_ID": Level.WARN}
    assert shard_findings(shards, "pessimistic")[0].level is Level.WARN
