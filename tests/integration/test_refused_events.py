"""Events of real servers that cannot become rows without loss: they stop the decoder with a next step."""

from pathlib import Path

import pymysql
import pytest

from dmdelta.errors import UnsupportedEvent
from dmdelta.model.change import Op
from tests.support.recording import event_kinds, record
from tests.support.replay import Change, decode
from tests.support.servers import Server, running

_LAST = ["mysql80", "mysql57", "mariadb"]
_INCIDENT = 26


def _all(archive: Path, database: str) -> list[Change]:
    return list(decode(archive, lambda schema, _: schema == database))


@pytest.mark.parametrize("name", _LAST)
def test_a_change_in_statement_format_is_refused(name: str, tmp_path: Path) -> None:
    """A session with binlog_format=STATEMENT writes a change that has no row events: the error says what to set."""
    with running(name) as server:
        database = server.fresh_database("statement")
        server.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO t VALUES (1, 1)",
            database=database,
        )
        record(server, tmp_path / "archive")
    with pytest.raises(UnsupportedEvent, match="statement format") as caught:
        _all(tmp_path / "archive", database)
    assert "binlog_format=ROW" in (caught.value.hint or "")
    assert caught.value.context["binlog_file"] == "binlog.000001"


@pytest.mark.parametrize("name", _LAST)
def test_an_incident_is_refused(name: str, tmp_path: Path) -> None:
    """A statement too big for the cache of a non-transactional table leaves an incident: rows are missing from the log."""
    small = {"max_binlog_stmt_cache_size": "4096", "binlog_stmt_cache_size": "4096"}
    action = {} if name == "mariadb" else {"binlog_error_action": "IGNORE_ERROR"}
    numbers = " UNION ALL ".join(f"SELECT {number} n" for number in range(9))
    with running(name, **small, **action) as server:
        database = server.fresh_database("incident")
        server.execute("CREATE TABLE t (id INT PRIMARY KEY, v TEXT) ENGINE=MyISAM", database=database)
        with pytest.raises(pymysql.err.MySQLError, match="max_binlog_stmt_cache_size"):
            server.execute(f"INSERT INTO t SELECT n, REPEAT('x', 1000) FROM ({numbers}) t", database=database)
        record(server, tmp_path / "archive")
    assert _INCIDENT in event_kinds(tmp_path / "archive")
    with pytest.raises(UnsupportedEvent, match="incident") as caught:
        _all(tmp_path / "archive", database)
    assert "snapshot" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("image", "insert", "said"),
    [
        ("MINIMAL", "INSERT INTO constants (id) VALUES (1)", r"constants: .* without b, t \(NOT NULL\)"),
        ("MINIMAL", "INSERT INTO constants (id, b) VALUES (1, DEFAULT)", r"constants: .* without t \(NOT NULL\)"),
        ("NOBLOB", "INSERT INTO constants (id) VALUES (1)", r"constants: .* without t \(NOT NULL\)"),
        ("MINIMAL", "INSERT INTO keyless VALUES ()", r"keyless: .* no column"),
    ],
)
def test_an_insert_whose_defaults_are_not_logged_is_refused(
    mysql80: Server, tmp_path: Path, image: str, insert: str, said: str
) -> None:
    """binlog_row_image MINIMAL and NOBLOB leave out columns that took a constant DEFAULT: the error says which."""
    database = mysql80.fresh_database("defaults")
    mysql80.execute(
        "CREATE TABLE constants (id INT PRIMARY KEY, a INT, b INT NOT NULL DEFAULT 5, t TEXT NOT NULL)",
        "CREATE TABLE keyless (a INT DEFAULT 5)",
        "SET SESSION sql_mode = ''",
        f"SET SESSION binlog_row_image = {image}",
        insert,
        database=database,
    )
    record(mysql80, tmp_path / "archive")
    with pytest.raises(UnsupportedEvent, match=said) as caught:
        _all(tmp_path / "archive", database)
    assert "binlog_row_image=FULL" in (caught.value.hint or "")


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_what_a_server_computes_is_logged_though_the_insert_leaves_it_out(
    mysql80: Server, tmp_path: Path, image: str
) -> None:
    """Generated columns, AUTO_INCREMENT, DEFAULT expressions and current timestamps are in every image: nothing is refused."""
    database = mysql80.fresh_database("computed")
    mysql80.execute(
        "CREATE TABLE computed (id INT AUTO_INCREMENT PRIMARY KEY, a INT, x VARCHAR(36) NOT NULL DEFAULT (UUID()),"
        " n INT DEFAULT (1 + 1), w TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
        " s INT AS (a * 2) STORED NOT NULL, v INT AS (a * 3) VIRTUAL NOT NULL)",
        f"SET SESSION binlog_row_image = {image}",
        "INSERT INTO computed (a) VALUES (4)",
        "UPDATE computed SET a = 5",
        "REPLACE INTO computed (id, a) VALUES (1, 6)",
        database=database,
    )
    record(mysql80, tmp_path / "archive")
    inserted, updated, replaced = (
        change.after or {} for change in _all(tmp_path / "archive", database) if change.op in (Op.INSERT, Op.UPDATE)
    )
    assert set(inserted) == {"id", "a", "x", "n", "w", "s", "v"}
    assert [(row["a"], row["s"], row["v"]) for row in (inserted, updated, replaced)] == [
        (4, 8, 12),
        (5, 10, 15),
        (6, 12, 18),
    ]


_UNDONE = ("SAVEPOINT s", "INSERT INTO t VALUES (2)", "ROLLBACK TO s")
_TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "CREATE TABLE m (id INT) ENGINE=MyISAM",
    "CREATE TABLE mixed (id INT PRIMARY KEY)",
    "CREATE TRIGGER copied AFTER INSERT ON mixed FOR EACH ROW INSERT INTO m VALUES (NEW.id)",
)


@pytest.mark.parametrize(
    "mix", ["INSERT INTO m VALUES (1)", "INSERT INTO mixed VALUES (1)", "CREATE TEMPORARY TABLE other (id INT)"]
)
def test_rows_that_a_savepoint_undoes_are_refused(mariadb: Server, tmp_path: Path, mix: str) -> None:
    """MariaDB leaves them in the log if the transaction changed MyISAM tables or created a temporary one."""
    database = mariadb.fresh_database("undone")
    begin, end = ("BEGIN", "INSERT INTO t VALUES (1)"), ("INSERT INTO t VALUES (3)", "COMMIT")
    mariadb.execute(*_TABLES, *begin, mix, *_UNDONE, *end, database=database)
    record(mariadb, tmp_path / "archive")
    assert mariadb.query("SELECT id FROM t", database) == ((1,), (3,))
    with pytest.raises(UnsupportedEvent, match="ROLLBACK TO SAVEPOINT undoes"):
        _all(tmp_path / "archive", database)


_SOUND = (
    ("BEGIN", "INSERT INTO t VALUES (1)", *_UNDONE, "INSERT INTO t VALUES (3)", "COMMIT"),
    ("BEGIN", "INSERT INTO t VALUES (4)", *_UNDONE, "INSERT INTO m VALUES (5)", "ROLLBACK TO s", "COMMIT"),
    ("BEGIN", "INSERT INTO mixed VALUES (6)", "SAVEPOINT s", "ROLLBACK TO s", "INSERT INTO t VALUES (7)", "COMMIT"),
)


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_savepoints_without_undone_rows_in_the_log_are_not_refused(name: str, tmp_path: Path) -> None:
    """The servers leave out the rows that they undo, or there are none."""
    without_gtids = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}  # which forbid mixed statements
    with running(name, **({} if name == "mariadb" else without_gtids)) as server:
        database = server.fresh_database("savepoints")
        server.execute(*_TABLES, *(statement for session in _SOUND for statement in session), database=database)
        record(server, tmp_path / "archive")
        source = {
            (table, *row) for table in ("t", "m", "mixed") for row in server.query(f"SELECT id FROM {table}", database)
        }
    decoded = [
        (change.table, (change.after or {})["id"]) for change in _all(tmp_path / "archive", database) if change.after
    ]
    assert sorted(decoded) == sorted(source)
