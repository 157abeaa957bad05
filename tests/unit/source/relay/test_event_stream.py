"""Events read from a connection and from a file."""

import io
import os
import socket
import struct
import threading
import zlib
from contextlib import suppress
from types import SimpleNamespace

import pytest

from dmdelta.binlog.events.header import HEADER
from dmdelta.errors import CorruptBinlog, PositionLost, SourceError, SourceUnavailable
from dmdelta.source.connection import server_error
from dmdelta.source.relay import event_stream
from dmdelta.source.relay.event_stream import BUFFER_SIZE, Events, FilePieces, WirePieces


def event(size: int, kind: int = 30) -> bytes:
    body = os.urandom(size - 23)
    whole = HEADER.pack(7, kind, 1, size, 0, 0) + body
    return whole + struct.pack("<I", zlib.crc32(whole))


def packets(payload: bytes) -> bytes:
    found = []
    while True:
        part, payload = payload[: 2**24 - 1], payload[2**24 - 1 :]
        found.append(len(part).to_bytes(3, "little") + b"\0" + part)
        if len(part) < 2**24 - 1:
            return b"".join(found)


def send(sock: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the reader may stop at damage
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)


def read_wire(data: bytes, silence: float = 5.0) -> list[bytes]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send, args=(theirs, data), daemon=True)
        sender.start()
        found: list[bytearray] = []
        largest = 0
        try:
            for piece in WirePieces(ours, "db:1", silence):
                if piece is None:
                    continue
                largest = max(largest, len(piece.data))
                if piece.first:
                    found.append(bytearray())
                found[-1] += piece.data
                assert piece.last == (len(found[-1]) == piece.header[3])
        except SourceUnavailable:
            assert largest <= BUFFER_SIZE
        sender.join()
    return [bytes(one) for one in found]


@pytest.mark.parametrize(
    "sizes", [[23, 60, 100], [BUFFER_SIZE, BUFFER_SIZE + 1, 40], [2**24 - 2, 30], [2**24 - 1, 30], [2**24 + 5, 30]]
)
def test_events_of_any_size_are_read_whole(sizes: list[int]) -> None:
    """Also those that fill a packet exactly, or need several, in pieces no larger than the buffer."""
    events = [event(size) for size in sizes]
    assert read_wire(b"".join(packets(b"\0" + one) for one in events)) == events


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (1236, "Could not find first log file name in binary log index file", PositionLost),
        (1236, "Client requested source to start replication from impossible position", PositionLost),
        (
            1236,
            "A replica with the same server_uuid/server_id as this replica has connected to the source",
            SourceError,
        ),
        (1227, "Access denied; you need REPLICATION SLAVE", SourceError),
        (1053, "Server shutdown in progress", SourceUnavailable),
    ],
)
def test_error_packets_become_dmdelta_errors(code: int, text: str, kind: type[SourceError]) -> None:
    """The message contains the server's text."""
    payload = b"\xff" + struct.pack("<H", code) + b"#HY000" + text.encode()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(packets(payload))
        with pytest.raises(SourceError, match=text.split(";", maxsplit=1)[0]) as caught:
            next(iter(WirePieces(ours, "db:1", 5.0)))
    assert type(caught.value) is kind
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Cannot replicate anonymous transaction when @@GLOBAL.GTID_MODE = ON, at file b.3, position 197", "ON_PERM"),
        ("Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF, at file b.1, position 157", "OFF_PERM"),
        ("Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file b.3", "binlog-name"),
        ("The sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = OFF", "binlog-name"),
    ],
)
def test_a_gtid_mode_error_is_not_a_lost_position(text: str, hint: str) -> None:
    """The server has the position but only sends it in another mode."""
    error = server_error(1236, text, "db:1")
    assert type(error) is SourceError
    assert hint in (error.hint or "")


def test_silence_counts_as_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iteration yields ticks while no data arrives, then raises SourceUnavailable."""
    clock = 100.0
    monkeypatch.setattr(event_stream, "time", SimpleNamespace(monotonic=lambda: clock))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pieces = iter(WirePieces(ours, "db:1", silence=30.0))
        assert next(pieces) is None
        clock += 31.0
        with pytest.raises(SourceUnavailable, match="neither an event nor a heartbeat"):
            list(pieces)


def test_an_event_longer_than_its_header_states_is_corrupt() -> None:
    """Header and packet must agree."""
    with pytest.raises(CorruptBinlog, match="size"):
        read_wire(packets(b"\0" + event(100) + b"more"))


def read_file(data: bytes) -> tuple[list[bytes], int]:
    """The bytes yielded as whole events or as pieces of one event, and the incomplete rest."""
    pieces, found, largest = FilePieces(io.BytesIO(data)), list[bytearray](), 0
    for read in pieces:
        largest = max(largest, len(read.data))
        if isinstance(read, Events) or read.first:
            found.append(bytearray())
        found[-1] += read.data
        assert isinstance(read, Events) or read.last == (len(found[-1]) == read.header[3])
    assert largest <= 2 * BUFFER_SIZE
    return [bytes(one) for one in found], pieces.torn


@pytest.mark.parametrize("cut", [0, 1, 10, 25, 70])
def test_an_incomplete_end_of_a_file_is_counted(cut: int) -> None:
    """Whole events are yielded, large ones in pieces; the rest is counted and not yielded as an event."""
    events = [event(40), event(3 * BUFFER_SIZE + 100), event(80)]
    data = b"".join(events)
    found, torn = read_file(data[: len(data) - cut])
    assert found == (events if cut == 0 else events[:2])
    assert torn == (0 if cut == 0 else 80 - cut)


@pytest.mark.parametrize("there", [10, 19, 500, BUFFER_SIZE, 2 * BUFFER_SIZE, 3 * BUFFER_SIZE + 99])
def test_no_piece_of_an_incomplete_large_event_is_yielded(there: int) -> None:
    """Its pieces would be yielded again after the file has grown."""
    whole, large = event(40), event(3 * BUFFER_SIZE + 100)
    found, torn = read_file(whole + large[:there])
    assert found == [whole]
    assert 0 < torn <= there


def test_many_events_are_read_at_once() -> None:
    """Their order and bytes are the file's, wherever a buffer ends."""
    data = b"".join(event(size) for size in [23, 700, 5000, BUFFER_SIZE - 1] * 9)
    found, torn = read_file(data)
    assert b"".join(found) == data
    assert torn == 0
    assert len(found) < 20


def test_an_event_smaller_than_its_header_ends_the_reading() -> None:
    """For example the zeros that a file system leaves after a crash."""
    whole = event(40)
    assert read_file(whole + bytes(300)) == ([whole], 19)
