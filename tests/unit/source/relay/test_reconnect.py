"""How a relay resumes, case by case."""

from dataclasses import replace

import pytest

from dmdelta.model.gtid import parse_gtid_set
from dmdelta.source.relay.reconnect import Continue, Lost, NewEpoch, RelayState, plan_connect, unexecuted
from dmdelta.source.server import ServerLog

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
OURS = parse_gtid_set(f"{A}:1-100", "mysql")
RELAY = RelayState(A, 3, "binlog.000007", 5000, created=1000, gtid_set=OURS)
SERVER = ServerLog(
    A,
    "mysql",
    {"binlog.000006": 900, "binlog.000007": 6000},
    executed=parse_gtid_set(f"{A}:1-120", "mysql"),
    purged=parse_gtid_set(f"{A}:1-10", "mysql"),
)


def test_the_same_log_is_continued() -> None:
    """Same server, same file, at least as large as the relayed part."""
    assert plan_connect(RELAY, SERVER, 1000) == Continue("binlog.000007", 5000)
    assert plan_connect(replace(RELAY, offset=6000), SERVER, 1000) == Continue("binlog.000007", 6000)
    without = replace(SERVER, executed=None, purged=None)
    assert plan_connect(replace(RELAY, gtid_set=None), without, 1000) == Continue("binlog.000007", 5000)


def test_a_file_read_to_its_end_and_purged_is_followed_by_the_next() -> None:
    """The server's oldest file is the next one: nothing is missing."""
    server = replace(SERVER, files={"binlog.000008": 100})
    state = replace(RELAY, next_file="binlog.000008")
    assert plan_connect(state, server, None) == Continue("binlog.000008", 4)
    assert isinstance(plan_connect(replace(state, gtid_set=None), server, None), Continue)


@pytest.mark.parametrize(
    ("server", "created", "reason"),
    [
        (SERVER, 1001, "was reset"),
        (replace(SERVER, files={"binlog.000007": 4999}), 1000, "was reset"),
        (replace(SERVER, files={"binlog.000001": 9000}), None, "was reset"),
        (replace(SERVER, files={"binlog.000009": 9000}, purged=parse_gtid_set(f"{A}:1-101", "mysql")), None, "purged"),
        (replace(SERVER, uuid=B, executed=parse_gtid_set(f"{A}:1-99", "mysql")), None, "never executed"),
        (replace(SERVER, uuid=B, purged=parse_gtid_set(f"{B}:1", "mysql")), None, "has purged"),
        (replace(SERVER, uuid=B, executed=None, purged=None), None, "no GTIDs"),
        (replace(SERVER, uuid=B, executed=parse_gtid_set("0-1-1", "mariadb")), None, "never executed"),
    ],
)
def test_the_reason_of_a_lost_position_is_named(server: ServerLog, created: int | None, reason: str) -> None:
    """The relay never continues on a guess."""
    plan = plan_connect(RELAY, server, created)
    assert isinstance(plan, Lost)
    assert reason in plan.reason


def test_a_log_without_gtids_matches_no_history() -> None:
    """An empty set is contained in every set and proves nothing."""
    server = replace(SERVER, uuid=B, purged=parse_gtid_set("", "mysql"))
    assert isinstance(plan_connect(replace(RELAY, gtid_set=parse_gtid_set("", "mysql")), server, None), Lost)


def test_the_missing_transactions_are_named() -> None:
    """Exactly those that the server purged and the relay lacks."""
    server = replace(SERVER, files={"binlog.000009": 9000}, purged=parse_gtid_set(f"{A}:1-105", "mysql"))
    assert plan_connect(RELAY, server, None) == Lost(
        "the server no longer has binlog.000007, and the server has purged transactions that are not relayed",
        f"{A}:101-105",
    )


@pytest.mark.parametrize(
    "server",
    [
        replace(SERVER, uuid=B),
        replace(SERVER, uuid=B, files={"mysql-bin.000001": 10}, executed=parse_gtid_set(f"{A}:1-100,{B}:1-3", "mysql")),
        replace(SERVER, files={"binlog.000009": 9000}, purged=OURS),
    ],
)
def test_another_log_with_the_same_history_is_a_new_epoch(server: ServerLog) -> None:
    """The server has executed all relayed transactions and still has all that follow."""
    assert plan_connect(RELAY, server, None) == NewEpoch(4, OURS)


@pytest.mark.parametrize(
    ("known", "logged", "purged", "lacking"),
    [
        (f"{A}:1-9", f"{A}:1-12", f"{A}:1-5", ""),
        (f"{A}:1-9", f"{A}:1-7", f"{A}:1-5", f"{A}:8-9"),
        (f"{A}:1-9,{B}:1-100", f"{A}:1-9", f"{A}:1-5,{B}:1-100", ""),
        (f"{A}:1-9,{B}:1-100", f"{A}:1-9", f"{A}:1-5,{B}:1-101", f"{B}:1-100"),
        (f"{A}:1-9,{B}:1-100", f"{A}:1-10", f"{A}:1-5,{B}:1-100", f"{B}:1-100"),
        ("", f"{A}:1-9", f"{B}:1-100", ""),
    ],
)
def test_what_a_server_has_executed_before_a_position(known: str, logged: str, purged: str, lacking: str) -> None:
    """What it has purged but never logged (a restored dump) counts if it has executed nothing else."""
    assert unexecuted(*(parse_gtid_set(text, "mysql") for text in (known, logged, purged))) == lacking
