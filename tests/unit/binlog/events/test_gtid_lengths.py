"""The length in a GTID event leads to the next transaction, if the event has room for it."""

import struct
from itertools import accumulate

import pytest

from dmdelta.binlog.events.gtid_skip import hop
from dmdelta.binlog.events.header import EventType
from dmdelta.model.gtid import GtidRun
from tests.support.changes import query_body

LOW, HIGH = bytes(15) + b"\x01", b"\xff" * 16
LOW_NAME, HIGH_NAME = "00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"
ENCODED = {
    "two bytes": lambda length: b"\xfc" + length.to_bytes(2, "little"),
    "three bytes": lambda length: b"\xfd" + length.to_bytes(3, "little"),
    "eight bytes": lambda length: b"\xfe" + length.to_bytes(8, "little"),
    "one byte": lambda length: bytes((length,)),
}


def event(kind: int, body: bytes, trailer: int, timestamp: int = 0) -> bytes:
    """A whole event whose checksum, if any, is zero: nobody verifies it here."""
    return struct.pack("<IBIIIH", timestamp, kind, 1, 19 + len(body) + trailer, 0, 0) + body + bytes(trailer)


def gtid_start(uuid: bytes, number: int, sequence: int, *, clock: int = 2, replica: bool = False) -> bytes:
    """The body of a GTID event up to its length."""
    times = (7 | replica << 55).to_bytes(7, "little") + (5).to_bytes(7, "little") * replica
    return struct.pack("<B16sqBqq", 1, uuid, number, clock, sequence - 1, sequence) + times


def transaction(
    sequence: int,
    uuid: bytes = LOW,
    *,
    number: int | None = None,
    encoded=ENCODED["two bytes"],
    cut: int = 0,
    trailer: int = 4,
    size: int = 200,
    kind: int = EventType.GTID,
    **start,
) -> bytes:
    """A transaction of `size` bytes; the length is the last field of its GTID event, which is `cut` bytes too short."""
    body = gtid_start(uuid, sequence if number is None else number, sequence, **start) + encoded(size)
    missing = max(cut - trailer, 0)
    whole = struct.pack("<IBIIIH", 0, kind, 1, 19 + len(body) + trailer - cut, 0, 0) + body
    begin = (whole + bytes(trailer))[: 19 + len(body) + trailer - cut]
    commit = event(EventType.XID, bytes(8), trailer)
    statement = query_body(b"BEGIN", "s")
    statement += b" " * (size - len(begin) - len(commit) - 19 - len(statement) - trailer)
    timestamp = int.from_bytes(body[len(body) - missing :], "little")
    return begin + event(EventType.QUERY, statement, trailer, timestamp) + commit


def hopped(*transactions: bytes, trailer: int = 4) -> tuple[int, list[GtidRun]]:
    """How many of the transactions are skipped, and their GTIDs."""
    runs: list[GtidRun] = []
    data = b"".join(transactions)
    starts = [0, *accumulate(map(len, transactions))]
    return starts.index(hop(data, 0, len(data), trailer, runs)), runs


@pytest.mark.parametrize("replica", [False, True], ids=["one time", "two times"])
@pytest.mark.parametrize("trailer", [0, 4])
@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED.keys())
def test_a_length_needs_room_in_its_event(encoded, trailer: int, replica: bool) -> None:  # noqa: FBT001
    """A length that ends with its event leads on; one that continues behind it does not, although the bytes match."""
    after = transaction(2, trailer=trailer)
    fits = transaction(1, encoded=encoded, trailer=trailer, replica=replica)
    assert hopped(fits, after, trailer=trailer) == (1, [GtidRun(LOW_NAME, 1, 1)])
    short = transaction(1, encoded=encoded, trailer=trailer, replica=replica, cut=1)
    assert hopped(short, after, trailer=trailer) == (0, [])


@pytest.mark.parametrize(("size", "skipped"), [(249, 1), (250, 1), (251, 0), (255, 0)])
def test_a_byte_above_250_is_not_a_length(size: int, skipped: int) -> None:
    """251 is NULL in the protocol, and 255 an error."""
    first = transaction(1, encoded=ENCODED["one byte"], size=size)
    assert hopped(first, transaction(2))[0] == skipped


@pytest.mark.parametrize(("clock", "skipped"), [(2, 1), (0, 0), (1, 0), (3, 0)])
def test_a_length_follows_a_logical_clock_only(clock: int, skipped: int) -> None:
    """Another type of clock has another format."""
    assert hopped(transaction(1, clock=clock), transaction(2))[0] == skipped


@pytest.mark.parametrize(("sequence", "skipped"), [(2, 1), (1, 0), (3, 0)])
def test_the_next_transaction_has_the_next_sequence_number(sequence: int, skipped: int) -> None:
    """Any other one is not the next transaction of the file."""
    assert hopped(transaction(1), transaction(sequence))[0] == skipped


@pytest.mark.parametrize(
    ("gtids", "runs"),
    [
        ([(LOW, 1), (LOW, 2), (LOW, 3)], [(LOW_NAME, 1, 3)]),
        ([(LOW, 1), (HIGH, 2), (HIGH, 3), (LOW, 4)], [(LOW_NAME, 1, 1), (HIGH_NAME, 2, 3), (LOW_NAME, 4, 4)]),
        ([(LOW, 1), (LOW, 3), (LOW, 2)], [(LOW_NAME, 1, 1), (LOW_NAME, 3, 3), (LOW_NAME, 2, 2)]),
        ([(HIGH, 5), (LOW, 5)], [(HIGH_NAME, 5, 5), (LOW_NAME, 5, 5)]),
    ],
    ids=["one server", "numbers that continue", "not in order", "the same number"],
)
def test_a_run_has_consecutive_numbers_of_one_server(
    gtids: list[tuple[bytes, int]], runs: list[tuple[str, int, int]]
) -> None:
    """Another server, or a number other than the next one, starts a run of its own."""
    written = [transaction(place, uuid, number=number) for place, (uuid, number) in enumerate(gtids, 1)]
    assert hopped(*written, transaction(len(gtids) + 1)) == (len(gtids), [GtidRun(*run) for run in runs])


def test_anonymous_transactions_are_skipped_and_have_no_gtid() -> None:
    """They separate the numbers around them."""
    anonymous = transaction(2, kind=EventType.ANONYMOUS_GTID, number=0)
    found = hopped(transaction(1, number=8), anonymous, transaction(3, number=9), transaction(4))
    assert found == (3, [GtidRun(LOW_NAME, 8, 9)])
