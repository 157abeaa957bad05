"""Preflight and the catalog against real servers."""

from pathlib import Path

import pytest

from dmdelta.errors import PositionLost
from dmdelta.model.schema import Column
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.server_checks import Intent, check_relay, check_source
from dmdelta.source.relay.relay_task import StartAt
from dmdelta.source.server import server_identity, server_position
from tests.support.relaying import catch_up, endpoint_of, purged_to_the_newest, relay_task, wait_until
from tests.support.servers import Server, running


@pytest.fixture(params=["mysql80", "mysql57", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


def test_a_test_server_passes_preflight(server: Server) -> None:
    """Only missing features of the server are warnings: column names on 5.7, replicas of MariaDB."""
    with open_connection(endpoint_of(server)) as connection:
        findings = check_source(connection, Intent(server_id=4711))
    raised = {found.name for found in findings if found.level is not Level.PASS}
    assert raised == {"mysql80": set(), "mysql57": {"binlog_row_metadata"}, "mariadb": {"server_id"}}[server.name]


def test_a_server_that_is_set_up_wrongly_fails_with_fixes(mysql80: Server) -> None:
    """Statement format, minimal metadata, no GTIDs, short retention and no privileges: each with its statement."""
    wrong = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF", "binlog_expire_logs_seconds": "600"}
    with running("mysql80", binlog_format="STATEMENT", binlog_row_metadata="MINIMAL", **wrong) as server:
        server.execute("CREATE USER 'poor'@'%' IDENTIFIED BY 'poor'")
        endpoint = endpoint_of(server, user="poor", password="poor")
        with open_connection(endpoint) as connection:
            findings = {found.name: found for found in check_source(connection, Intent(server_id=1))}
    failed = {name for name, found in findings.items() if found.level is Level.FAIL}
    assert failed == {
        "binlog_format",
        "privilege replication slave",
        "privilege replication client",
        "privilege select",
        "server_id",
        "start position",
    }
    warned = {name for name, found in findings.items() if found.level is Level.WARN}
    assert warned == {"binlog_row_metadata", "gtid_mode", "retention"}
    assert all(findings[name].fix for name in failed | warned)


@pytest.mark.parametrize("flavor", ["mysql80", "mysql57", "mariadb"])
def test_a_replica_that_does_not_log_what_it_receives_is_refused(flavor: str) -> None:
    """Also while it is stopped. MariaDB shows that to few accounts: the warning after its first change has the privilege."""
    with running(flavor, log_slave_updates="OFF") as server:

        def found() -> Finding:
            with open_connection(endpoint_of(server)) as connection:
                findings = check_source(connection, Intent())
            return next(one for one in findings if one.name == "log_replica_updates")

        assert found().level is Level.PASS
        server.execute("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='r'")
        if flavor == "mariadb":
            assert found().level is Level.PASS
            server.execute("SET GLOBAL gtid_slave_pos = '0-77-1'")
            assert found().level is Level.WARN
            assert "GRANT SLAVE MONITOR" in found().fix
            server.execute(f"GRANT SLAVE MONITOR ON *.* TO '{server.user}'@'%'")
        assert found().level is Level.FAIL
        assert "--log-" in found().fix


def test_an_existing_relay_log_is_checked_at_its_position(tmp_path: Path) -> None:
    """`meta` may have been purged; a purged position that the relay still needs is named."""

    def start_position() -> Finding:
        with open_connection(task.endpoint) as connection:
            return next(
                found for found in check_relay(connection, task, lambda: None) if found.name == "start position"
            )

    with running("mysql80") as server:
        task = relay_task(server, tmp_path, start=StartAt("binlog.000001"))
        server.execute("CREATE DATABASE relayed")
        assert start_position().level is Level.PASS
        catch_up(task)
        server.execute("FLUSH BINARY LOGS")
        catch_up(task)
        wait_until(lambda: purged_to_the_newest(server))
        assert start_position().level is Level.PASS
        server.execute("CREATE DATABASE missed", "FLUSH BINARY LOGS")
        wait_until(lambda: purged_to_the_newest(server))
        lost = start_position()
        assert lost.level is Level.FAIL
        assert f"{server.query('SELECT @@server_uuid')[0][0]}:2" in lost.message
        with pytest.raises(PositionLost):
            catch_up(task)


def test_the_position_is_the_server_s(server: Server) -> None:
    """File, offset and GTID set as the server reports them."""
    with open_connection(endpoint_of(server)) as connection:
        assert server_identity(connection).flavor == server.flavor
        found = server_position(connection)
    binlog_file, offset, gtids = server.position()
    assert (found.binlog_file, found.offset, str(found.gtid_set)) == (binlog_file, offset, gtids)


def test_structures_are_read_exactly(server: Server) -> None:
    """Types, sizes in bytes, precision, character sets, members, keys and generated columns."""
    database = server.fresh_database("catalog")
    server.execute(
        "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL, a CHAR(5) CHARACTER SET utf8, b VARCHAR(20) CHARACTER SET latin1,"
        " c DECIMAL(20,4), d DATETIME(3) NOT NULL, e ENUM('x','it''s'), f BIT(5), g INT GENERATED ALWAYS AS (id + 1) VIRTUAL,"
        " h VARBINARY(9), i POINT, j TEXT, PRIMARY KEY (d, id))",
        "CREATE TABLE keyless (a INT, UNIQUE (a))",
        "CREATE TABLE wide_key (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (a, b), UNIQUE (c))",
        "CREATE VIEW v AS SELECT id FROM t",
        database=database,
    )
    with open_connection(endpoint_of(server)) as connection:
        found = {schema.table: schema for schema in read_schemas(connection, lambda schema, _: schema == database)}
    assert set(found) == {"t", "keyless", "wide_key"}
    assert found["keyless"].primary_key == ()
    assert found["wide_key"].primary_key == ("c",)
    assert found["t"].primary_key == ("d", "id")
    usual = str(server.query("SELECT @@collation_server")[0][0])
    assert found["t"].columns == (
        Column("id", "bigint", unsigned=True, nullable=False),
        Column("a", "char", length=15, charset="utf8mb3", collation="utf8mb3_general_ci"),
        Column("b", "varchar", length=20, charset="latin1", collation="latin1_swedish_ci"),
        Column("c", "decimal", precision=20, scale=4),
        Column("d", "datetime", precision=3, nullable=False),
        Column("e", "enum", charset="utf8mb4", members=("x", "it's"), collation=usual),
        Column("f", "bit", length=5),
        Column("g", "int"),
        Column("h", "varbinary", length=9),
        Column("i", "geometry"),
        Column("j", "text", charset="utf8mb4", collation=usual),
    )


DEFAULTS = {
    "a INT DEFAULT -5": "-5",
    "b DECIMAL(9,2) NOT NULL DEFAULT 1.5": "1.50",
    "c VARCHAR(20) DEFAULT 'it''s \\\\ 5'": "it's \\ 5",
    "d CHAR(4) NOT NULL DEFAULT ''": "",
    "e VARCHAR(9) DEFAULT 'NULL'": "NULL",
    "f ENUM('x', 'it''s') DEFAULT 'it''s'": "it's",
    "g SET('x', 'y') DEFAULT 'x,y'": "x,y",
    "h DATE DEFAULT '2024-02-29'": "2024-02-29",
    "i DATETIME(3) DEFAULT '2024-02-29 01:02:03.500'": "2024-02-29 01:02:03.500",
    "j DATETIME DEFAULT CURRENT_TIMESTAMP": None,
    "k YEAR DEFAULT 2024": "2024",
    "l DOUBLE DEFAULT 1.5": "1.5",
    "m INT": None,
    "n INT DEFAULT NULL": None,
    "o TIMESTAMP NOT NULL DEFAULT '2024-02-29 01:02:03'": None,
    "p BIT(3) DEFAULT b'101'": None,
    "q VARCHAR(30) DEFAULT '1'": "1",
}


def test_a_column_has_its_literal_default(server: Server) -> None:
    """Its text, from each server's notation; not an expression, nor what depends on a session."""
    expressions = (
        {} if server.name == "mysql57" else {"r VARCHAR(40) DEFAULT (UUID())": None, "s INT DEFAULT (1 + 1)": None}
    )
    columns = DEFAULTS | expressions
    database = server.fresh_database("defaults")
    server.execute(f"CREATE TABLE t ({', '.join(columns)})", database=database)
    with open_connection(endpoint_of(server)) as connection:
        (schema,) = read_schemas(connection, lambda schema, _: schema == database)
    assert [column.default for column in schema.columns] == list(columns.values())


def test_invisible_columns_are_listed(mysql80: Server) -> None:
    """They are part of row images."""
    database = mysql80.fresh_database("invisible")
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY, hidden INT INVISIBLE)", database=database)
    with open_connection(endpoint_of(mysql80)) as connection:
        (schema,) = read_schemas(connection, lambda schema, _: schema == database)
    assert [column.visible for column in schema.columns] == [True, False]
