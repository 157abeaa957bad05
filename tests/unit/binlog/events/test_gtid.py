"""GTID events: commit times."""

import struct
from uuid import UUID

import pytest

from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.header import HEADER, EventType

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
    assert parse_gtid(gtid_event(after)) == (f"{NAME}:7", committed, False, False, None)


def test_an_anonymous_transaction_has_a_time() -> None:
    assert parse_gtid(gtid_event(times(IMMEDIATE), EventType.ANONYMOUS_GTID))[:2] == (None, IMMEDIATE)


def test_without_a_logical_clock_there_is_no_time() -> None:
    assert parse_gtid(gtid_event(times(IMMEDIATE), clock=0)).committed_us is None
