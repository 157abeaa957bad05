"""Events as they arrive from a connection or a file, in pieces of bounded size.

Wire format: MySQL client/server protocol, "Packets" (3-byte length, sequence number; 2^24-1 bytes mean that more
follows) and "COM_BINLOG_DUMP response" (one status byte before the event in its first packet).
"""

import socket
import time
from collections.abc import Iterator
from os import SEEK_END
from struct import Struct
from typing import BinaryIO, NamedTuple

from dmdelta.binlog.events.header import HEADER, HEADER_SIZE
from dmdelta.errors import CorruptBinlog, SourceUnavailable
from dmdelta.source.connection import foreign_errors, server_error

BUFFER_SIZE = 1 << 20
"""Bytes; a larger event is split into several pieces."""
TICK = 0.2
"""Seconds without data after which an iteration yields None: the caller then checks the clock and its stop signal."""

EventFields = tuple[int, int, int, int, int, int]
"""An event's header: timestamp, type, server id, size, log_pos, flags."""

_FULL_PACKET = 0xFFFFFF
_PACKET = 4
_OK, _EOF, _ERROR = 0x00, 0xFE, 0xFF
_ERROR_CODE = Struct("<H")
_SIZE = Struct("<9xI").unpack_from


class Piece(NamedTuple):
    """A part of an event, valid until the next one is requested.

    Attributes:
        header: of the event that the piece belongs to.
        data: the bytes; the first piece of an event starts with its header, a whole event is one piece.
    """

    header: EventFields
    data: memoryview
    first: bool
    last: bool


class Events(NamedTuple):
    """Whole, consecutive events."""

    data: memoryview


class WirePieces:
    """Reads the response to a dump command. Iteration yields None on every tick without data."""

    def __init__(self, sock: socket.socket, where: str, silence: float) -> None:
        """`silence`: seconds without a byte, heartbeats included, after which the connection counts as lost."""
        self._sock = sock
        self._where = where
        self._silence = silence
        self._heard = time.monotonic()
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._low = 0
        self._high = 0
        sock.settimeout(TICK)

    def __iter__(self) -> Iterator[Piece | None]:
        """Raises SourceUnavailable when the connection is lost, and the error in a server's error packet."""
        unpack = HEADER.unpack_from
        while True:
            if self._high - self._low < _PACKET + 1:
                yield from self._need(_PACKET + 1)
            low = self._low
            length = int.from_bytes(self._buffer[low : low + 3], "little")
            status = self._buffer[low + _PACKET]
            if status != _OK:
                yield from self._refusal(length, status)
            left = length - 1
            if left < HEADER_SIZE:
                raise CorruptBinlog(f"{self._where} sent an event without a header", hint="check the network path")
            self._low += _PACKET + 1
            if self._high - self._low < HEADER_SIZE:
                yield from self._need(HEADER_SIZE)
            header = unpack(self._buffer, self._low)
            size = header[3]
            if size == left and size <= BUFFER_SIZE:
                if self._high - self._low < size:
                    yield from self._need(size)
                low = self._low
                self._low = low + size
                yield Piece(header, self._buffer[low : low + size], True, True)
            else:
                yield from self._parts(header, left, length == _FULL_PACKET)

    def _parts(self, header: EventFields, left: int, more: bool) -> Iterator[Piece | None]:  # noqa: FBT001
        """An event that is too large for the buffer, or for one packet."""
        sent, size, first = 0, header[3], True
        while True:
            while left:
                yield from self._need(1)
                low = self._low
                part = min(left, self._high - low)
                self._low = low + part
                left -= part
                sent += part
                if sent > size:
                    raise self._torn(size, sent)
                yield Piece(header, self._buffer[low : low + part], first, sent == size)
                first = False
            if not more:
                break
            yield from self._need(_PACKET)
            left = int.from_bytes(self._buffer[self._low : self._low + 3], "little")
            more = left == _FULL_PACKET
            self._low += _PACKET
        if sent != size:
            raise self._torn(size, sent)

    def _torn(self, size: int, sent: int) -> CorruptBinlog:
        return CorruptBinlog(
            f"{self._where} sent an event whose size differs from its header", hint="run again", expected=size, got=sent
        )

    def _refusal(self, length: int, status: int) -> Iterator[None]:
        """Read an error or EOF packet and raise the matching error."""
        yield from self._need(_PACKET + min(length, BUFFER_SIZE // 2))
        body = bytes(self._buffer[self._low + _PACKET : self._low + _PACKET + length])
        if status == _ERROR:
            text = body[3:].decode("utf-8", "replace")
            raise server_error(_ERROR_CODE.unpack_from(body, 1)[0], text[6:] if text[:1] == "#" else text, self._where)
        if status == _EOF:
            raise SourceUnavailable(f"{self._where} ended the dump", hint="the server is probably shutting down")
        raise CorruptBinlog(f"{self._where} sent a packet with status {status}", hint="check the network path")

    def _need(self, count: int) -> Iterator[None]:
        """Wait until the buffer holds `count` bytes; yields on every tick without data."""
        while self._high - self._low < count:
            if self._low + count > BUFFER_SIZE or self._low == self._high:
                rest = bytes(self._buffer[self._low : self._high])
                self._buffer[: len(rest)] = rest
                self._low, self._high = 0, len(rest)
            if not self._receive():
                yield None

    def _receive(self) -> bool:
        with foreign_errors(self._where):
            try:
                received = self._sock.recv_into(self._buffer[self._high :])
            except TimeoutError:
                received = -1
        if received == 0:
            raise SourceUnavailable(f"{self._where} closed the connection", hint="the relay reconnects automatically")
        now = time.monotonic()
        if received > 0:
            self._heard = now
            self._high += received
            return True
        if now - self._heard > self._silence:
            raise SourceUnavailable(
                f"{self._where} sent neither an event nor a heartbeat",
                hint="check the network path",
                for_s=self._silence,
            )
        return False


class FilePieces:
    """Reads the events of a binlog file from the current position of `stream` to the end of the file.

    Iteration yields many whole events at a time, and splits an event that is too large for that into pieces.

    Attributes:
        torn: bytes after the last whole event, set when the iteration ends: the file is incomplete or still being
            written.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.torn = 0

    def __iter__(self) -> Iterator[Events | Piece]:
        rest = b""
        while chunk := self._stream.read(BUFFER_SIZE):
            data = rest + chunk
            whole, size = _whole_events(data)
            if whole:
                yield Events(memoryview(data)[:whole])
            rest = data[whole:]
            if size is not None and size < HEADER_SIZE:
                self.torn = HEADER_SIZE
                return
            if size is not None and size > BUFFER_SIZE:
                if not self._holds(size - len(rest)):
                    break
                yield from self._parts(rest, size)
                rest = b""
        self.torn = len(rest)

    def _holds(self, count: int) -> bool:
        """Whether that many bytes follow: no piece of an incomplete event may be yielded."""
        at = self._stream.tell()
        end = self._stream.seek(0, SEEK_END)
        self._stream.seek(at)
        return end - at >= count

    def _parts(self, head: bytes, size: int) -> Iterator[Piece]:
        header, part, sent = HEADER.unpack_from(head), head, 0
        while part:
            sent += len(part)
            yield Piece(header, memoryview(part), sent == len(part), sent == size)
            part = self._stream.read(min(size - sent, BUFFER_SIZE))


def _whole_events(data: bytes) -> tuple[int, int | None]:
    """Where the last whole event ends, and the size of the event after it; None if its header is incomplete."""
    at, have = 0, len(data)
    while have - at >= HEADER_SIZE:
        size: int = _SIZE(data, at)[0]
        if size < HEADER_SIZE or size > have - at:
            return at, size
        at += size
    return at, None
