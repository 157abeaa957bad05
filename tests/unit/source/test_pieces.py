"""Events off a wire and off a file."""

import io
import os
import socket
import struct
import threading
import zlib
from contextlib import suppress

import pytest

from dmdelta.binlog.events import HEADER
from dmdelta.errors import CorruptBinlog, PositionLost, SourceError, SourceUnavailable
from dmdelta.source.pieces import BUFFER_SIZE, FilePieces, WirePieces


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
def test_events_of_any_size_come_whole(sizes: list[int]) -> None:
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
def test_error_packets_become_our_errors(code: int, text: str, kind: type[SourceError]) -> None:
    """With the server's own words."""
    payload = b"\xff" + struct.pack("<H", code) + b"#HY000" + text.encode()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(packets(payload))
        with pytest.raises(SourceError, match=text.split(";", maxsplit=1)[0]) as caught:
            next(iter(WirePieces(ours, "db:1", 5.0)))
    assert type(caught.value) is kind
    assert caught.value.hint


def test_silence_counts_as_a_lost_connection() -> None:
    """Ticks come while nothing is heard, then SourceUnavailable."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pieces = iter(WirePieces(ours, "db:1", silence=0.3))
        assert next(pieces) is None
        with pytest.raises(SourceUnavailable, match="neither an event nor a heartbeat"):
            list(pieces)


def test_an_event_that_is_longer_than_it_says_is_damage() -> None:
    """Header and packet must agree."""
    with pytest.raises(CorruptBinlog, match="size"):
        read_wire(packets(b"\0" + event(100) + b"more"))


@pytest.mark.parametrize("cut", [0, 1, 10, 25, 70])
def test_a_file_s_torn_end_is_counted(cut: int) -> None:
    """Whole events come, what is behind them is reported and not returned as an event."""
    events = [event(40), event(BUFFER_SIZE + 100), event(80)]
    data = b"".join(events)
    pieces = FilePieces(io.BytesIO(data[: len(data) - cut]))
    found = [bytes(piece.data) for piece in pieces if piece.first and piece.last]
    assert found == ([events[0], events[2]] if cut == 0 else [events[0]])
    assert pieces.torn == (0 if cut == 0 else 80 - cut)
