"""Hopping from transaction to transaction finds the same as a walk over all events, or does not hop."""

import io
import struct
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmdelta.binlog.events.boundary import BoundaryTracker, scan_gtids, walk_events
from dmdelta.binlog.events.gtid_skip import MYSQL_GTIDS, hop
from dmdelta.binlog.events.header import HEADER, EventType
from dmdelta.errors import CorruptBinlog
from dmdelta.model.segment import MAGIC, Segment
from tests.support.changes import Log, event_bytes, query_body
from tests.support.golden import GOLDEN
from tests.support.gtids import completed_gtids, spelled

QUICKSTART = Path(__file__).parents[4] / "pipelines" / "quickstart-binlogs"
FILES = sorted([*GOLDEN.glob("*/binlog.0*"), *QUICKSTART.glob("*/binlog.0*")])
LENGTHS = [file for file in FILES if file.parent.name in ("mysql", "mysql80", "mysql97") and file.stat().st_size > 500]
"""Recordings of servers that log a transaction's length, with transactions."""

UUID = bytes(range(16))
NAME = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def label(file: Path) -> str:
    return f"{file.parent.name}-{file.name}"


def whole(file: Path, size: int | None = None) -> Segment:
    return Segment(str(file), "source", 1, file.name, 4, file.stat().st_size if size is None else size)


def scanned(data: bytes, segment: Segment) -> list[str]:
    return spelled(scan_gtids(io.BytesIO(data), segment))


def boundaries(data: bytes, segment: Segment) -> tuple[int, list[int]]:
    """The end of the first event, and every boundary."""
    tracker, first, ends = BoundaryTracker(), 0, []
    for header, body in walk_events(io.BytesIO(data), segment):
        first = first or header.offset + header.size
        if tracker.feed(header.event_type, body, header.server_id):
            ends.append(header.offset + header.size)
    return first, ends


def some(places: list[int], most: int = 25) -> list[int]:
    """All positions, or a limited number, evenly spread."""
    return places[:: len(places) // most + 1]


def gtid_events(data: bytes) -> list[tuple[int, int]]:
    """Position and type of each GTID event of MySQL in a whole file."""
    found, at = [], len(MAGIC)
    while at < len(data):
        _, kind, _, size, _, _ = HEADER.unpack_from(data, at)
        found += [(at, kind)] * (kind in MYSQL_GTIDS)
        at += size
    return found


def length_at(data: bytes, at: int) -> int:
    """The position of the transaction's length in an untagged GTID event."""
    return at + 68 + 7 * (data[at + 67] >> 7)


def with_length(data: bytes, at: int, length: int) -> bytes:
    """The file with another length in the GTID event at `at`, in three bytes, over the version that follows it."""
    place = length_at(data, at)
    encoded = b"\xfc" + length.to_bytes(2, "little")
    return data[:place] + encoded + data[place + len(encoded) :]


@pytest.mark.parametrize("file", FILES, ids=label)
def test_hop_and_walk_find_the_same(file: Path) -> None:
    """In each recorded file, and in every segment that it can be cut into."""
    data = file.read_bytes()
    segment = whole(file)
    with file.open("rb") as stream:
        assert spelled(scan_gtids(stream, segment)) == completed_gtids(data, segment)
    first, ends = boundaries(data, segment)
    for start, end in [*pairwise(ends), *((start, ends[-1]) for start in some(ends[:-1]))]:
        piece = replace(segment, start=start, end=end)
        content = data[:first] + data[start:end]
        assert scanned(content, piece) == completed_gtids(content, piece)


@pytest.mark.parametrize("file", FILES, ids=label)
def test_an_incomplete_transaction_is_not_included(file: Path) -> None:
    """A file that ends anywhere between two events."""
    data, segment = file.read_bytes(), whole(file)
    ends = [header.offset + header.size for header, _ in walk_events(io.BytesIO(data), segment)]
    for end in some(ends):
        piece = replace(segment, end=end)
        assert scanned(data[:end], piece) == completed_gtids(data[:end], piece)


@pytest.mark.parametrize("server", ["mysql80", "mysql97"])
def test_most_transactions_are_skipped(server: str) -> None:
    """A hop ends at a GTID event; more than half of the transactions can be skipped, XA and single statements cannot."""
    begun = passed = 0
    for file in sorted((GOLDEN / server).glob("binlog.0*")):
        data = file.read_bytes()
        begins = [at for at, _ in gtid_events(data)]
        reached = [hop(data, at, len(data), 4, []) for at in begins]
        assert set(reached) <= set(begins)
        begun += len(begins)
        passed += sum(end > at for at, end in zip(begins, reached, strict=True))
    assert passed > begun / 2


@pytest.mark.parametrize("server", ["mysql57", "mariadb"])
def test_without_lengths_all_events_are_walked(server: str) -> None:
    """MySQL 5.7 and MariaDB log none."""
    for file in sorted((GOLDEN / server).glob("binlog.0*")):
        data, at = file.read_bytes(), len(MAGIC)
        while at < len(data):
            assert hop(data, at, len(data), 4, []) == at
            at += HEADER.unpack_from(data, at)[3]


@pytest.mark.parametrize("file", LENGTHS, ids=label)
def test_a_wrong_length_is_not_trusted(file: Path) -> None:
    """A length that leads to any other event of the file, or nowhere, does not change the result."""
    data, segment = file.read_bytes(), whole(file)
    expected = completed_gtids(data, segment)
    starts = [header.offset for header, _ in walk_events(io.BytesIO(data), segment)]
    untagged = [at for at, kind in gtid_events(data) if kind != EventType.GTID_TAGGED][:12]
    for at in untagged:
        lengths = {place - at for place in (*starts, len(data)) if 0 <= place - at < 1 << 16}
        for length in {*some(sorted(lengths)), 1, 18, 19, 31, 0xFFFF}:
            assert scanned(with_length(data, at, length), segment) == expected


@settings(max_examples=150, deadline=None)
@given(file=st.sampled_from(LENGTHS), draw=st.data())
def test_a_damaged_gtid_event_does_not_change_the_set(file: Path, draw: st.DataObject) -> None:
    """Flipped bits after its identity do not change the result, or are an error."""
    data, segment = bytearray(file.read_bytes()), whole(file)
    expected = completed_gtids(bytes(data), segment)
    at, kind = draw.draw(st.sampled_from(gtid_events(bytes(data))))
    size = HEADER.unpack_from(data, at)[3]
    # A tagged event encodes its identity in its first bytes, with variable length.
    first = 44 if kind != EventType.GTID_TAGGED else 19 + 3 + 2 + 1 + 32 + 1 + 9 + 1 + 6
    for _ in range(draw.draw(st.integers(1, 3))):
        place = draw.draw(st.integers(min(first, size - 1), size - 1))
        data[at + place] ^= 1 << draw.draw(st.integers(0, 7))
    with suppress(CorruptBinlog):
        assert scanned(bytes(data), segment) == expected


def gtid_body(number: int, length: bytes, *, sequence: int | None = None, replica: bool = False) -> bytes:
    times = (7).to_bytes(7, "little")
    if replica:
        times = (7 | 1 << 55).to_bytes(7, "little") + (5).to_bytes(7, "little")
    clock = struct.pack("<Bqq", 2, number - 1, number if sequence is None else sequence)
    return struct.pack("<B16sq", 1, UUID, number) + clock + times + length + struct.pack("<I", 80031)


def packed_length(number: int) -> bytes:
    """The shortest of the protocol's encodings."""
    if number < 251:
        return bytes((number,))
    size, code = next((size, code) for size, code in ((2, 252), (3, 253), (8, 254)) if number < 1 << 8 * size)
    return bytes((code,)) + number.to_bytes(size, "little")


def transactions(sizes: list[int], *, checksum: bool = True, replica: bool = False) -> Log:
    """A log of transactions with one rows event of the given sizes each."""
    log = Log(checksum=checksum)
    for number, size in enumerate(sizes, start=1):
        inner = [(EventType.QUERY, query_body(b"BEGIN", "s")), (EventType.WRITE_ROWS, bytes(size))]
        events = [*inner, (EventType.XID, bytes(8))]
        rest = sum(len(event_bytes(kind, body, checksum=checksum)) for kind, body in events)
        encoded = b""
        while True:  # the length includes its own bytes
            begin = event_bytes(EventType.GTID, gtid_body(number, encoded, replica=replica), checksum=checksum)
            if encoded == (encoded := packed_length(len(begin) + rest)):
                break
        log.add(EventType.GTID, gtid_body(number, encoded, replica=replica))
        for kind, body in events:
            log.add(kind, body)
    return log


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("replica", [True, False])
def test_lengths_of_any_size_are_read(checksum: bool, replica: bool) -> None:  # noqa: FBT001
    """One to eight bytes, after one commit time or, on a replica, two: all but the last are skipped in one hop."""
    log = transactions([1, 300, 70_000, 17 << 20, 5, 9], checksum=checksum, replica=replica)
    begins, runs = [at for at, _ in gtid_events(log.data)], []
    assert hop(log.data, begins[0], len(log.data), 4 * checksum, runs) == begins[-1]
    assert runs == [(NAME, 1, 5)]
    assert spelled(scan_gtids(io.BytesIO(log.data), log.segment())) == [f"{NAME}:{number}" for number in range(1, 7)]


@pytest.mark.parametrize("checksum", [True, False])
def test_a_transaction_of_two_events_is_skipped(checksum: bool) -> None:  # noqa: FBT001
    """Its end may follow its GTID event directly."""
    log, commit = Log(checksum=checksum), event_bytes(EventType.XID, bytes(8), checksum=checksum)
    size = len(event_bytes(EventType.GTID, gtid_body(1, b"\0"), checksum=checksum)) + len(commit)
    for number in (1, 2):
        log.add(EventType.GTID, gtid_body(number, packed_length(size))).add(EventType.XID, bytes(8))
    first, last = (at for at, _ in gtid_events(log.data))
    assert hop(log.data, first, len(log.data), 4 * checksum, []) == last


def test_a_length_of_two_transactions_is_not_trusted() -> None:
    """The second one's sequence number is then missing, with or without a checksum."""
    for checksum in (True, False):
        log = transactions([300, 300, 300, 300], checksum=checksum)
        begins = [at for at, _ in gtid_events(log.data)]
        both = with_length(log.data, begins[0], begins[2] - begins[0])
        assert hop(both, begins[0], len(both), 4 * checksum, []) == begins[0]
        rest = with_length(log.data, begins[1], len(log.data) - begins[1])
        assert hop(rest, begins[0], len(rest), 4 * checksum, []) == begins[1]
        for data in (both, rest):
            assert scanned(data, log.segment()) == [f"{NAME}:{number}" for number in range(1, 5)]


def mapped_bytes() -> int:
    """Resident bytes of this process that belong to a file."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("RssFile:")[2].split()[0]) << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_long_walk_uses_little_memory(tmp_path: Path) -> None:
    """One transaction of 96 MB without a length: pages that the walk has read are released."""
    log = Log(version="5.7.44").add(EventType.GTID, struct.pack("<B16sq", 1, UUID, 9))
    block = event_bytes(EventType.WRITE_ROWS, bytes(1 << 15)) * 32
    file = tmp_path / "binlog.000001"
    with file.open("wb") as stream:
        stream.write(log.data)
        for _ in range(96):
            stream.write(block)
        stream.write(event_bytes(EventType.XID, bytes(8)))
    before, most = mapped_bytes(), 0
    with file.open("rb") as stream:
        for number, _ in enumerate(walk_events(stream, whole(file))):
            most = most if number % 64 else max(most, mapped_bytes())
        assert most - before < 48 << 20
        assert spelled(scan_gtids(stream, whole(file))) == [f"{NAME}:9"]
