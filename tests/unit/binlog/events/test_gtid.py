"""GTID events: names, commit times, and what they tell about the transaction."""

import struct
from uuid import UUID

import pytest

from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.header import HEADER, EventType
from dmdelta.errors import CorruptBinlog

NAME = "00010203-0405-0607-0809-0a0b0c0d0e0f"
IMMEDIATE, ORIGINAL = 1_764_000_000_123_456, 1_763_000_000_654_321
LAST = 2**55 - 1


def times(immediate: int, original: int | None = None) -> bytes:
    """In the format of mysql/binlog/event/control_events.h: 55 bits, and a flag that another time follows."""
    if original is None:
        return immediate.to_bytes(7, "little")
    return (immediate | 1 << 55).to_bytes(7, "little") + original.to_bytes(7, "little")


def gtid_event(after: bytes, kind: int = EventType.GTID, clock: int = 2) -> bytes:
    """A whole event of MySQL; `after` follows the logical clock."""
    body = struct.pack("<B16sqBqq", 1, UUID(NAME).bytes, 7, clock, 3, 4) + after
    return HEADER.pack(1, kind, 1, HEADER.size + len(body), 0, 0) + body


@pytest.mark.parametrize(
    ("after", "committed"),
    [
        (times(IMMEDIATE), IMMEDIATE),
        (times(IMMEDIATE, ORIGINAL), ORIGINAL),
        (times(LAST), LAST),
        (times(0), None),
        (b"", None),
        (times(IMMEDIATE)[:6], None),
    ],
    ids=["of this server", "of the first server", "the last moment", "none", "of MySQL 5.7", "cut off"],
)
def test_the_commit_time_is_that_of_the_first_server(after: bytes, committed: int | None) -> None:
    """A replica's event has two times; that of the original commit counts."""
    assert parse_gtid(gtid_event(after)) == (f"{NAME}:7", committed, False, None, False)


def test_an_anonymous_transaction_has_a_time() -> None:
    assert parse_gtid(gtid_event(times(IMMEDIATE), EventType.ANONYMOUS_GTID))[:2] == (None, IMMEDIATE)


def test_without_a_logical_clock_there_is_no_time() -> None:
    assert parse_gtid(gtid_event(times(IMMEDIATE), clock=0)).committed_us is None


XID = struct.pack("<IBB", 7, 2, 1) + b"abc"


def mariadb_event(flags: int, after: bytes = b"") -> bytes:
    """A whole event of server 42, without trailing padding."""
    body = struct.pack("<QIB", 9, 3, flags) + after
    return HEADER.pack(1, EventType.MARIADB_GTID, 42, HEADER.size + len(body), 0, 0) + body


@pytest.mark.parametrize(
    ("flags", "after", "standalone", "xid"),
    [
        (0, b"", False, None),
        (1, b"", True, None),
        (2, bytes(8), False, None),
        (4 | 8 | 16, b"", False, None),
        (1 | 32, b"", True, None),
        (64, XID, False, "X'6162',X'63',7"),
        (64 | 2, bytes(8) + XID, False, "X'6162',X'63',7"),
        (64, struct.pack("<IBB", 1, 0, 0), False, "X'',X'',1"),
        (128 | 1, XID, True, None),
    ],
    ids=["plain", "standalone", "group", "others", "DDL", "prepared", "prepared in a group", "empty", "completed"],
)
def test_a_gtid_of_mariadb_has_flags(flags: int, after: bytes, standalone: bool, xid: str | None) -> None:  # noqa: FBT001
    """One statement without a commit, or a transaction whose BEGIN it is; a prepared XA transaction has its name."""
    assert parse_gtid(mariadb_event(flags, after)) == ("3-42-9", None, not standalone, xid, False)


START, COMMIT, ROLLBACK = b"\x02", b"\x04" + bytes(8), b"\x08" + bytes(8)


@pytest.mark.parametrize("padding", [b"", bytes(5)])
@pytest.mark.parametrize(("flags", "before"), [(1, b""), (1 | 2, b"\xff" * 8), (64, XID), (64 | 2, b"\xff" * 8 + XID)])
@pytest.mark.parametrize(
    ("extra", "expected"),
    [(START, True), (ROLLBACK, True), (COMMIT, False), (b"\x01\x02", False), (b"\x03\x01", True), (b"", False)],
    ids=["start", "rollback", "commit", "two engines", "start of two engines", "none"],
)
def test_a_statement_that_starts_or_failed_has_no_effect(
    flags: int,
    before: bytes,
    extra: bytes,
    padding: bytes,
    expected: bool,  # noqa: FBT001
) -> None:
    """The byte after the group's number and the XA transaction's name, not another one."""
    assert parse_gtid(mariadb_event(flags, before + extra + padding)).without_effect is expected


@pytest.mark.parametrize(
    "event",
    [
        gtid_event(b"")[: HEADER.size + 24],
        mariadb_event(0)[:-1],
        mariadb_event(64, XID[:-1]),
        mariadb_event(128, XID[:5]),
        mariadb_event(64 | 2, bytes(7) + XID),
    ],
    ids=["MySQL", "MariaDB", "in the name", "before the name", "in the group"],
)
def test_a_truncated_event_is_damage(event: bytes) -> None:
    """Wherever it ends."""
    with pytest.raises(CorruptBinlog, match="GTID event"):
        parse_gtid(event)


def test_the_fixed_part_of_a_gtid_event_is_sufficient() -> None:
    """Flags, server and number."""
    assert parse_gtid(gtid_event(b"")[: HEADER.size + 25]).text == f"{NAME}:7"
