"""How a relay handles heartbeats, and events that have no position in their header."""

import struct
import zlib
from contextlib import closing, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from dmdelta.binlog.events.header import HEADER, EventType
from dmdelta.errors import SourceUnavailable
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay import gtid_lookup, start_position
from dmdelta.source.relay.dump import DumpRequest, heartbeat_offset, is_artificial, named_file
from dmdelta.source.relay.event_stream import Piece
from dmdelta.source.relay.gtid_lookup import ToldPlace, first_place
from dmdelta.source.relay.relay_task import RelayTask, StatusFile
from dmdelta.source.relay.segmenter import Cutter
from dmdelta.source.relay.session import STALLED_HEARTBEATS, RelayRequests, ServerSession, _Target
from dmdelta.source.relay.start_position import StartTime


def heartbeat(offset: int, body: bytes = b"binlog.000001", kind: int = EventType.HEARTBEAT) -> Piece:
    header = (0, kind, 1, 19 + len(body) + 4, offset % 2**32, 0)
    whole = HEADER.pack(*header) + body
    return Piece(header, memoryview(whole + struct.pack("<I", zlib.crc32(whole))), first=True, last=True)


@pytest.fixture
def session(tmp_path: Path) -> ServerSession:
    endpoint = Endpoint("h", 1, "u", "p")
    return ServerSession(
        RelayTask("s", str(tmp_path), endpoint), endpoint, RelayRequests(lambda: False), StatusFile(tmp_path)
    )


def beat(session: ServerSession, cutter: Cutter, offset: int, times: int) -> int:
    stalled = 0
    for _ in range(times):
        stalled = session._artificial(heartbeat(offset), cutter, stalled)
    return stalled


def test_a_server_that_announces_events_but_sends_none_is_disconnected(session: ServerSession, tmp_path: Path) -> None:
    """Heartbeats that announce bytes which never arrive do not count as progress."""
    cutter = Cutter(tmp_path, "binlog.000001", 500, b"")
    assert beat(session, cutter, 900, STALLED_HEARTBEATS - 1) == STALLED_HEARTBEATS - 1
    with pytest.raises(SourceUnavailable, match="announces more events but sends none"):
        beat(session, cutter, 900, STALLED_HEARTBEATS)


def test_heartbeats_at_the_current_offset_are_ignored(session: ServerSession, tmp_path: Path) -> None:
    """Also beyond 4 GiB, where the heartbeat's offset has wrapped."""
    assert beat(session, Cutter(tmp_path, "binlog.000001", 500, b""), 500, 20) == 0
    far = 2**32 + 500
    assert beat(session, Cutter(tmp_path, "binlog.000001", far, b""), far, 20) == 0


def test_both_kinds_of_heartbeats_are_read() -> None:
    """The old one has file and 32 bits, the new one a list of fields with a variable-length offset."""
    old = bytes(heartbeat(4711).data)
    assert (named_file(old), heartbeat_offset(old)) == ("binlog.000001", 4711)
    fields = bytes([1, 13]) + b"binlog.000002" + bytes([2, 2, 0x80 | 0x67, 0x24]) + b"\0"
    new = bytes(heartbeat(0, fields, EventType.HEARTBEAT_V2).data)
    assert (named_file(new), heartbeat_offset(new)) == ("binlog.000002", 0x67 | 0x24 << 7)
    assert is_artificial(heartbeat(4711).header, 4)


def test_a_server_that_skips_is_not_at_its_end() -> None:
    """MySQL sends a heartbeat a second, with offsets inside transactions, while it skips to the requested position."""
    skipping = [heartbeat(offset) for offset in (1_000, 5_000, 9_000)]
    assert first_place([*skipping, None, heartbeat(12_000), heartbeat(12_000)]) == ("binlog.000001", 12_000, b"")
    gtid = Piece((0, EventType.GTID, 1, 65, 9_565, 0), memoryview(b"gtid"), first=True, last=True)
    rotate = Piece(
        (0, EventType.ROTATE, 1, 44, 0, 0x20), heartbeat(0, struct.pack("<Q", 4) + b"binlog.000001", 4).data, True, True
    )
    assert first_place([rotate, *skipping, gtid]) == ("binlog.000001", 9_500, b"gtid")
    assert first_place(skipping) is None


WRAP = 2**32
FAKE_ROTATE = Piece(
    (0, EventType.ROTATE, 1, 44, 0, 0x20), heartbeat(0, struct.pack("<Q", 4) + b"binlog.000001", 4).data, True, True
)


def event(kind: int, size: int, end: int, second: int = 0) -> Piece:
    """An event that ends at `end`, of which the header has 32 bits."""
    header = (second, kind, 1, size, end % WRAP, 0)
    return Piece(header, memoryview(HEADER.pack(*header) + bytes(min(size, 60) - 19)), first=True, last=True)


def test_an_event_that_ends_at_a_multiple_of_4_gib(session: ServerSession, tmp_path: Path) -> None:
    """Its header has 0, as those of events that are in no file have; it is written, and the log goes on behind it."""
    for kind in (EventType.XID, EventType.ROTATE):
        description = event(EventType.FORMAT_DESCRIPTION, 60, 0)
        pieces = [FAKE_ROTATE, description, event(kind, 40, 2 * WRAP), heartbeat(2 * WRAP)]
        following = [FAKE_ROTATE, description, event(EventType.XID, 31, 2 * WRAP + 31)]
        with closing(Cutter(tmp_path / kind.name, "binlog.000001", 2 * WRAP - 40, b"")) as cutter:
            session._stream([*pieces, *following], cutter, None, _Target(1, "binlog.000001", 4))
        assert (cutter.binlog_file, cutter.offset) == ("binlog.000001", 2 * WRAP + 31)


@pytest.fixture
def long_file(monkeypatch: pytest.MonkeyPatch) -> Piece:
    """A server's file whose first event ends at 4 GiB; the GTID event after it."""
    gtid = event(EventType.GTID, 60, WRAP + 60, second=7)
    pieces = [FAKE_ROTATE, event(EventType.XID, WRAP - 4, WRAP), gtid]
    for module in (gtid_lookup, start_position):
        monkeypatch.setattr(module, "open_dump", lambda _: nullcontext(pieces))
    monkeypatch.setattr(gtid_lookup, "open_connection", lambda _: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(gtid_lookup, "server_log", lambda *_: SimpleNamespace(files={"binlog.000001": WRAP + 500}))
    return gtid


def test_positions_behind_a_multiple_of_4_gib(long_file: Piece) -> None:
    """The lookup of a GTID set, and that of a time, count the event that ends there."""
    request = DumpRequest(Endpoint("h", 1, "u", "p"), None, None, "binlog.000001")
    assert gtid_lookup._whole_offset(request, ToldPlace("binlog.000001", 0, bytes(long_file.data))) == WRAP
    start = StartTime(datetime.fromtimestamp(5, timezone.utc))
    found = start_position._first_on_server(request, start, ("binlog.000001", WRAP + 500))
    assert found == ("binlog.000001", WRAP)
