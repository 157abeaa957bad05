"""Events of real servers that cannot become rows without loss: they stop the decoder with a next step."""

from pathlib import Path

import pymysql
import pytest

from dmdelta.errors import UnsupportedEvent
from tests.support.recording import event_kinds, record
from tests.support.replay import decode
from tests.support.servers import running

_LAST = ["mysql80", "mysql57", "mariadb"]
_INCIDENT = 26


def _all(archive: Path, database: str) -> list[object]:
    return list(decode(archive, lambda schema, _: schema == database))


@pytest.mark.parametrize("name", _LAST)
def test_a_change_in_statement_format_is_refused(name: str, tmp_path: Path) -> None:
    """A session with binlog_format=STATEMENT writes a change that no row event holds: an error says what to set."""
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
