"""Small pure parts of the source: records passed between processes, error codes, names in information_schema."""

import ssl
from dataclasses import replace

import pymysql
import pytest

from dmdelta.errors import SourceError, SourceUnavailable
from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.model.tls import Tls
from dmdelta.source.catalog import enum_members
from dmdelta.source.connection import foreign_errors
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.purge import Known
from dmdelta.source.relay.relay_dir import following_file
from dmdelta.source.relay.relay_task import RelayStatus, RelayTask, StartAfter, StartAt, StartEdge
from dmdelta.source.server import flavor_of, version_of


@pytest.mark.parametrize(
    "task",
    [
        RelayTask(
            "s",
            "/r",
            Endpoint(
                host="h",
                port=1,
                user="u",
                password="p",
                tls=Tls("/ca", "/c", "/k", verify_host=False),
                flavor="mariadb",
                server_id=9,
            ),
        ),
        RelayTask("s", "/r", Endpoint("h", 1, "u", "p"), start=StartEdge.CURRENT, retry=Retry(2, 0.1, 3.0)),
        RelayTask("s", "/r", binlog_dir="/a", start=StartAt("b.000001", 90, 4), until_caught_up=True),
        RelayTask("s", "/r", start=StartAfter("0-1-2", 3), known=Known(Position(3, "b.000002", 4), "0-1-9")),
    ],
)
def test_a_task_round_trips_through_json(task: RelayTask) -> None:
    """The relay reads what the parent has written."""
    assert RelayTask.from_json(task.to_json()) == task


def test_a_password_is_not_shown() -> None:
    """Neither repr nor str contains it."""
    endpoint = Endpoint("h", 1, "u", "s3cret")
    assert "s3cret" not in f"{endpoint!r} {endpoint}"
    assert "s3cret" not in repr(RelayTask("s", "/r", endpoint))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (pymysql.err.OperationalError(1045, "Access denied"), SourceError),
        (pymysql.err.OperationalError(1040, "Too many connections"), SourceUnavailable),
        (pymysql.err.OperationalError(2003, "Can't connect"), SourceUnavailable),
        (pymysql.err.InterfaceError(0, ""), SourceUnavailable),
        (ConnectionResetError("reset"), SourceUnavailable),
        (ssl.SSLCertVerificationError("self-signed"), SourceError),
        (RuntimeError("'cryptography' package is required"), SourceError),
    ],
)
def test_driver_errors_are_mapped_by_reaction(error: Exception, kind: type[SourceError]) -> None:
    """Retryable errors become SourceUnavailable, the others have a hint."""
    with pytest.raises(SourceError) as caught, foreign_errors("db:3306"):
        raise error
    assert type(caught.value) is kind
    assert caught.value.hint
    assert "db:3306" in caught.value.message


def test_back_off_grows_and_stays_within_its_bounds() -> None:
    """Exponential, jittered, capped."""
    retry = Retry(first=1.0, longest=8.0)
    for failures, most in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (50, 8.0)]:
        assert most / 2 <= retry.delay(failures) <= most


@pytest.mark.parametrize(
    ("column_type", "members"),
    [
        ("enum('a','b')", ("a", "b")),
        ("set('it''s','a,b','')", ("it's", "a,b", "")),
        (r"enum('back\\slash','line\nend','nul\0')", ("back\\slash", "line\nend", "nul\0")),
    ],
)
def test_enum_members_are_unescaped(column_type: str, members: tuple[str, ...]) -> None:
    """Quotes are doubled, control characters escaped."""
    assert enum_members(column_type) == members


@pytest.mark.parametrize(
    ("text", "flavor", "version"),
    [
        ("8.0.31", "mysql", (8, 0, 31)),
        ("5.7.22-log", "mysql", (5, 7, 22)),
        ("9.7.4", "mysql", (9, 7, 4)),
        ("10.11.18-MariaDB-deb12-log", "mariadb", (10, 11, 18)),
        ("5.5.5-10.4.6-MariaDB", "mariadb", (10, 4, 6)),
        ("8.4", "mysql", (8, 4, 0)),
    ],
)
def test_versions_are_parsed(text: str, flavor: str, version: tuple[int, int, int]) -> None:
    """In the formats of `SELECT VERSION()`."""
    assert (flavor_of(text), version_of(text)) == (flavor, version)


def test_the_following_file_name() -> None:
    """The number of digits is kept, or grows by one on overflow."""
    assert following_file("binlog.000009") == "binlog.000010"
    assert following_file("mysql-bin.999999") == "mysql-bin.1000000"


def test_the_servers_end_grows_with_what_it_sends():
    """The server's end at the time of the connection counts until the relay has passed it, also across files."""
    status = RelayStatus(pid=1, epoch=2)
    assert status.server_end is None
    status = replace(status, server_file="b.000002", server_offset=900, binlog_file="b.000002", offset=400)
    assert status.server_end == Position(2, "b.000002", 900)
    assert replace(status, offset=901).server_end == Position(2, "b.000002", 901)
    assert replace(status, binlog_file="b.000003", offset=4).server_end == Position(2, "b.000003", 4)
