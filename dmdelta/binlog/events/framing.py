"""Reads segments as a stream of events: sizes, offsets and checksums, with a bounded read buffer.

Format: see dmdelta.model.segment. A checksum is the CRC32 of the event without its last four bytes.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from struct import Struct
from typing import BinaryIO
from zlib import crc32

from dmdelta.binlog.events.format_description import FormatDescription, parse_format_description
from dmdelta.binlog.events.header import CHECKSUM_SIZE, HEADER, HEADER_SIZE, EventType
from dmdelta.errors import CorruptBinlog
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment

READ_SIZE = 1 << 20

RawEvent = tuple[int, int, int, bytes, int]
"""(type, offset in the file, timestamp in s, the event with header and without checksum, flags)."""
_U32 = Struct("<I").unpack_from
_HEAD = Struct("<IB4xI4xH").unpack_from
"""timestamp, type, size, flags."""
_HINT = "the segment is damaged: delete it; the relay fetches it again"


class PayloadStream:
    """The body of one event, read in chunks: `read(n)` returns at most n bytes, b"" at the event's end."""

    def __init__(self, header: bytes, buffered: bytes, remaining: int, read: Callable[[int], bytes]) -> None:
        self._buffered = buffered
        self._remaining = remaining
        self._read = read
        self.checksum = crc32(header)

    def read(self, size: int = -1) -> bytes:
        count = self._remaining if size < 0 else min(size, self._remaining)
        if self._buffered:
            piece, self._buffered = self._buffered[:count], self._buffered[count:]
        else:
            piece = self._read(count)
        self._remaining -= len(piece)
        self.checksum = crc32(piece, self.checksum)
        return piece

    def drain(self) -> int:
        """Read the rest; returns the number of bytes that the stream could not deliver."""
        while self._remaining and self.read(READ_SIZE):
            pass
        return self._remaining


class SegmentReader:
    """Reads one segment. `format` is known right after construction.

    `payload` is the body of the transaction payload event that `events` yielded last: such an event can be as large as
    its transaction, so its bytes are not yielded but must be read from `payload` before the next event is requested.

    Raises:
        CorruptBinlog: bad magic, a checksum mismatch, a truncated event, or inconsistent sizes.
    """

    def __init__(self, stream: BinaryIO, segment: Segment) -> None:
        self._stream = stream
        self._segment = segment
        self.payload: PayloadStream | None = None
        if stream.read(len(MAGIC)) != MAGIC:
            raise CorruptBinlog(
                f"{segment.path} is not a binlog file", hint="a binlog file starts with fe 62 69 6e", offset=0
            )
        self._first = self._format_event()
        self.format: FormatDescription = parse_format_description(self._first, segment.path)

    def _format_event(self) -> bytes:
        header = self._stream.read(HEADER_SIZE)
        if len(header) < HEADER_SIZE:
            raise self.corrupt("ends inside its first event", self._segment.start)
        size: int = HEADER.unpack(header)[3]
        if not HEADER_SIZE < size < READ_SIZE:
            raise self.corrupt(f"has a first event of {size} bytes", self._segment.start)
        event = header + self._stream.read(size - HEADER_SIZE)
        if len(event) < size:
            raise self.corrupt("ends inside its first event", self._segment.start)
        return event

    def corrupt(self, what: str, offset: int) -> CorruptBinlog:
        """The error for damage at `offset` of the server's file."""
        return CorruptBinlog(
            f"{self._segment.path} {what}", hint=_HINT, binlog_file=self._segment.binlog_file, offset=offset
        )

    def _fill(self, buffered: bytes, need: int) -> bytes:
        """`buffered` and the bytes that follow it in the file: at least `need` bytes, fewer only at its end."""
        pieces, have = [buffered], len(buffered)
        while have < need:
            piece = self._stream.read(max(READ_SIZE, need - have))
            if not piece:
                break
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)

    def events(self) -> Iterator[RawEvent]:
        """Every event of [segment.start, segment.end) in order."""
        offset, first = self._segment.start, self._first
        if offset != FIRST_OFFSET:
            return self._walk(offset)
        description = first[: len(first) - self.format.trailer]
        begin: RawEvent = (EventType.FORMAT_DESCRIPTION, offset, _U32(first, 0)[0], description, 0)
        return chain((begin,), self._walk(offset + len(first)))

    def _walk(self, offset: int) -> Iterator[RawEvent]:
        end, checked, trailer = self._segment.end, self.format.checksum, self.format.trailer
        unpack, smallest, payload = _HEAD, HEADER_SIZE + trailer, int(EventType.TRANSACTION_PAYLOAD)
        buffer, at, have = b"", 0, 0
        while True:
            if have - at < HEADER_SIZE:
                buffer, at = self._fill(buffer[at:], HEADER_SIZE), 0
                have = len(buffer)
                if have < HEADER_SIZE:
                    break
            timestamp, kind, size, flags = unpack(buffer, at)
            if size < smallest or offset + size > end:
                raise self.corrupt(f"has an event of {size} bytes that does not fit", offset)
            if kind == payload:
                yield kind, offset, timestamp, self._open_payload(buffer[at:], size), flags
                buffer, at = self._close_payload(offset), 0
                have = len(buffer)
                offset += size
                continue
            if have - at < size:
                buffer, at = self._fill(buffer[at:], size), 0
                have = len(buffer)
                if have < size:
                    raise self.corrupt("ends inside an event", offset)
            stop = at + size
            event = buffer[at : stop - trailer]
            if (
                checked
                and crc32(event) != _U32(buffer, stop - CHECKSUM_SIZE)[0]
                and kind != EventType.FORMAT_DESCRIPTION
            ):
                raise self.corrupt("has an event that fails its checksum", offset)
            yield kind, offset, timestamp, event, flags
            offset += size
            at = stop
        if have - at or offset != end:
            raise self.corrupt(f"ends at {offset + have - at}, not at {end}", offset)

    def _open_payload(self, buffered: bytes, size: int) -> bytes:
        """Set `payload`; returns the event's header."""
        header, stop = buffered[:HEADER_SIZE], size - self.format.trailer
        self._after = buffered[stop:]
        self.payload = PayloadStream(header, buffered[HEADER_SIZE:stop], stop - HEADER_SIZE, self._stream.read)
        return header

    def _close_payload(self, offset: int) -> bytes:
        """Verify what `payload` read; returns the bytes that were read after the event."""
        payload, self.payload = self.payload, None
        trailer = self.format.trailer
        if payload is None or payload.drain():
            raise self.corrupt("ends inside an event", offset)
        after = self._fill(self._after, trailer)
        if len(after) < trailer:
            raise self.corrupt("ends inside an event", offset)
        if trailer and payload.checksum != _U32(after, 0)[0]:
            raise self.corrupt("has an event that fails its checksum", offset)
        return after[trailer:]
