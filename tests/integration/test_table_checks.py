"""DM's prechecks of the tables that take part, against real servers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.rules import BlockAllowList
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight import Finding, Level
from dmdelta.source.table_checks import check_tables
from tests.support.relaying import endpoint_of
from tests.support.servers import Server, running

NAMES = {"tables", "binlog_db", "primary_key", "foreign_key", "conn_number", "privilege lock tables"}


@pytest.fixture(params=["mysql80", "mysql57", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


def findings(server: Server, rules: BlockAllowList) -> dict[str, Finding]:
    with open_connection(endpoint_of(server)) as connection:
        return {found.name: found for found in check_tables(connection, rules.wanted, loads=True)}


def test_good_tables_pass_and_others_are_named(server: Server) -> None:
    """A table without a key and the child of a cascade are warned of, by name, unless they take no part."""
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
    """The account that may not lock fails the check, with the statement that mends it; one schema's grant is enough."""
    database = server.fresh_database("checks")
    server.execute("CREATE TABLE keyless (id INT)", database=database)
    server.execute(
        "CREATE USER IF NOT EXISTS 'unlocked'@'%' IDENTIFIED BY 'unlocked'",
        "GRANT SELECT, REPLICATION CLIENT ON *.* TO 'unlocked'@'%'",
    )
    account = replace(endpoint_of(server), user="unlocked", password="unlocked")
    wanted = BlockAllowList(do_dbs=(database,)).wanted
    with open_connection(account) as connection:
        (found,) = (one for one in check_tables(connection, wanted, loads=True) if "lock" in one.name)
        assert found.level is Level.FAIL
        assert database in found.message
        assert "GRANT LOCK TABLES" in found.fix
        assert all("lock" not in one.name for one in check_tables(connection, wanted, loads=False))
        server.execute(f"GRANT LOCK TABLES ON `{database}`.* TO 'unlocked'@'%'")
        (found,) = (one for one in check_tables(connection, wanted, loads=True) if "lock" in one.name)
        assert found.level is Level.PASS


def test_what_the_server_keeps_out_of_its_log_fails_the_check_and_the_run(tmp_path: Path, capsys) -> None:
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
        capsys.readouterr()
        spec.write_text(yaml.safe_dump({**content, "ignore-checking-items": ["binlog_db", "binlog_bd"]}))
        assert execute(["check", str(spec), "--json"]) == 0
        checks = {row["check"]: row["level"] for row in json.loads(capsys.readouterr().out)}
        assert "binlog_db" not in checks
        assert checks["binlog_bd"] == "warn"
