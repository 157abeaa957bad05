"""Transaction boundaries, event by event."""

import struct

import pytest

from dmdelta.binlog.events.boundary import BoundaryTracker
from dmdelta.binlog.events.header import EventType as E
from dmdelta.errors import CorruptBinlog
from tests.support.changes import query_body

UUID = bytes(range(16))
TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"
GTID = (E.GTID, struct.pack("<B16sq", 1, UUID, 5), False)
ANONYMOUS = (E.ANONYMOUS_GTID, struct.pack("<B16sq", 1, bytes(16), 0), False)
ROWS = ((E.TABLE_MAP, b"", False), (E.WRITE_ROWS, b"", False))


def query(sql: str, *, ends: bool) -> tuple[int, bytes, bool]:
    return E.QUERY, query_body(sql.encode(), "s"), ends


def mariadb(flags: int) -> tuple[int, bytes, bool]:
    return E.MARIADB_GTID, struct.pack("<QIB", 9, 3, flags) + bytes(6), False


BEGIN, END = query("BEGIN", ends=False), (E.XID, bytes(8), True)
CASES = {
    "between transactions": [(E.FORMAT_DESCRIPTION, b"", True), (E.PREVIOUS_GTIDS, b"", True), (E.ROTATE, b"", True)],
    "a transaction with a GTID": [GTID, BEGIN, *ROWS, END, (E.STOP, b"", True)],
    "anonymous": [ANONYMOUS, BEGIN, (E.ROWS_QUERY, b"", False), *ROWS, END],
    "without any GTID event": [BEGIN, *ROWS, END],
    "MyISAM": [GTID, BEGIN, *ROWS, query("COMMIT", ends=True)],
    "savepoints": [GTID, BEGIN, query("SAVEPOINT a", ends=False), *ROWS, query("ROLLBACK TO a", ends=False), END],
    "a rollback": [GTID, BEGIN, *ROWS, query("ROLLBACK", ends=True)],
    "DDL": [GTID, query("CREATE TABLE t (a INT)", ends=True)],
    "DDL without a GTID": [query("DROP TABLE t", ends=True), query("CREATE TABLE t (a INT)", ends=True)],
    "create select": [GTID, BEGIN, query("CREATE TABLE t (a INT) START TRANSACTION", ends=False), *ROWS, END],
    "compressed": [GTID, (E.TRANSACTION_PAYLOAD, b"", True)],
    "XA": [
        GTID,
        query("XA START X'61',X'',1", ends=False),
        *ROWS,
        query("XA END X'61',X'',1", ends=False),
        (E.XA_PREPARE, b"", True),
        GTID,
        query("XA COMMIT X'61',X'',1", ends=True),
    ],
    "statement format": [GTID, BEGIN, (E.INTVAR, b"", False), query("INSERT INTO t VALUES (1)", ends=False), END],
    "an unknown statement": [GTID, query("EXPLODE", ends=True)],
    "an incident": [GTID, (E.INCIDENT, b"", True)],
    "MariaDB": [mariadb(0), (E.MARIADB_ANNOTATE_ROWS, b"", False), *ROWS, END],
    "MariaDB DDL": [mariadb(1), query("CREATE TABLE t (a INT)", ends=True)],
    "MariaDB Aria": [mariadb(0), *ROWS, query("COMMIT", ends=True)],
    "MariaDB create select": [mariadb(0), query("CREATE TABLE t (a INT)", ends=False), *ROWS, END],
    "MariaDB XA": [mariadb(0), *ROWS, query("XA END X'61',X'',1", ends=False), (E.XA_PREPARE, b"", True)],
    "MariaDB XA commit": [mariadb(1), query("XA COMMIT X'61',X'',1", ends=True)],
    "a heartbeat inside": [GTID, BEGIN, (E.HEARTBEAT, b"", False), *ROWS, END, (E.HEARTBEAT, b"", True)],
}


@pytest.mark.parametrize("events", CASES.values(), ids=CASES.keys())
def test_boundaries_follow_complete_transactions(events: list[tuple[int, bytes, bool]]) -> None:
    """`feed` is true exactly where a segment may be cut."""
    tracker = BoundaryTracker()
    assert [tracker.feed(kind, body, 1) for kind, body, _ in events] == [ends for _, _, ends in events]


def test_the_gtid_is_known_when_its_transaction_is_complete() -> None:
    """`completed` is set at the last event only, `gtid` from the first on."""
    tracker = BoundaryTracker()
    tracker.feed(*GTID[:2])
    assert (tracker.gtid, tracker.completed, tracker.inside) == (f"{TEXT}:5", None, True)
    tracker.feed(*BEGIN[:2])
    tracker.feed(*END[:2])
    assert (tracker.gtid, tracker.completed, tracker.inside) == (f"{TEXT}:5", f"{TEXT}:5", False)
    tracker.feed(E.ROTATE, b"")
    assert tracker.completed is None


def test_a_mariadb_gtid_contains_the_server_id() -> None:
    """domain-server-sequence, with the server from the header."""
    tracker = BoundaryTracker()
    tracker.feed(*mariadb(0)[:2], server_id=42)
    tracker.feed(E.XID, bytes(8))
    assert tracker.completed == "3-42-9"


@pytest.mark.parametrize("kind", [E.GTID, E.ANONYMOUS_GTID, E.GTID_TAGGED])
def test_boundaries_do_not_need_the_names_of_mysql(kind: E) -> None:
    """Without `named`, GTID events of MySQL need no body; those of MariaDB tell whether a BEGIN follows."""
    tracker = BoundaryTracker(named=False)
    assert [tracker.feed(kind, b""), tracker.inside] == [False, True]
    assert [tracker.feed(*event[:2]) for event in (BEGIN, *ROWS, END)] == [False, False, False, True]
    assert (tracker.gtid, tracker.completed, tracker.inside) == (None, None, False)
    tracker.feed(*mariadb(0)[:2])
    assert not tracker.feed(E.QUERY, query_body(b"CREATE TABLE t (a INT)", "s"))
    tracker.feed(*END[:2])
    tracker.feed(*mariadb(1)[:2])
    assert tracker.feed(E.QUERY, query_body(b"CREATE TABLE t (a INT)", "s"))


@pytest.mark.parametrize("kind", [E.GTID, E.MARIADB_GTID, E.QUERY])
def test_a_truncated_event_is_damage(kind: E) -> None:
    """A boundary is not guessed from half an event."""
    with pytest.raises(CorruptBinlog):
        BoundaryTracker().feed(kind, bytes(5))
