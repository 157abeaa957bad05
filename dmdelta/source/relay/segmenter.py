"""Writes events to segments: tracks the offset, verifies checksums, and cuts at transaction boundaries."""

import time
from pathlib import Path
from zlib import crc32

from dmdelta.binlog.events.boundary import INSIDE, BoundaryTracker
from dmdelta.binlog.events.format_description import parse_format_description
from dmdelta.binlog.events.header import (
    CHECKSUM_SIZE,
    GTID_EVENTS,
    HEADER,
    HEADER_SIZE,
    QUERY_EVENTS,
    EventType,
    event_name,
)
from dmdelta.errors import CorruptBinlog, PositionLost
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.gtid import GtidSet
from dmdelta.model.position import file_number
from dmdelta.model.segment import CUT_BYTES, FIRST_OFFSET
from dmdelta.source.relay.event_stream import EventFields, Piece
from dmdelta.source.relay.gtid_wire import BEGINNINGS, set_before_file
from dmdelta.source.relay.segment_writer import CUT_SECONDS, SegmentWriter

log = get_logger(__name__)

_BOUNDARY_EVENTS = GTID_EVENTS | QUERY_EVENTS
_WRAP = 2**32
_WHOLE = 0x2144DF1C
"""The CRC32 of any byte string that ends with its own CRC32."""


class Cutter:
    """Takes the events of a log in order, except artificial ones, starting at `offset` of `binlog_file`.

    With `skip_to` beyond `offset`, events before it are read but not written, and `gtids` holds their set.

    Attributes:
        boundary: offset of the last transaction boundary in `binlog_file`.
    """

    def __init__(self, epoch_folder: Path, binlog_file: str, offset: int, description: bytes, skip_to: int = 0) -> None:
        self._folder = epoch_folder
        self._skip_to = skip_to
        self.binlog_file = binlog_file
        self.offset = self.boundary = offset
        self._checksum = parse_format_description(description, binlog_file).checksum if description else False
        self._writer = SegmentWriter(epoch_folder, binlog_file, max(offset, skip_to), description)
        self._tracker = BoundaryTracker(named=bool(skip_to))
        self._since = time.monotonic()
        self._crc = 0
        self._tail = b""
        self._collected = b""
        self.gtids: GtidSet | None = None

    @property
    def skipping(self) -> bool:
        """Still before the first byte to be written."""
        return self.offset < self._skip_to

    @property
    def on_disk(self) -> tuple[str, int]:
        """File and offset up to which segments are published."""
        return self.binlog_file, self._writer.published

    def take(self, piece: Piece) -> None:
        """Take one piece of an event.

        Raises:
            CorruptBinlog: the event is not at the offset that its header states, or its checksum does not match.
        """
        header, data, first, last = piece
        if first and (self.offset + header[3] - header[4]) % _WRAP:
            raise self._misplaced(header)
        if not (first and last):
            whole = self._collect(piece)
        elif self._checksum and header[1] != EventType.FORMAT_DESCRIPTION and not checksum_holds(data):
            raise self._fails(header[1])
        else:
            whole = data
        if self.offset >= self._skip_to:
            self._writer.write(data)
        if last:
            self.offset += header[3]
            self._ended(header[1], header[2], whole)

    def take_events(self, data: memoryview) -> None:
        """Take whole, consecutive events: the same as `take` for each, but faster. Not while skipping.

        Raises:
            CorruptBinlog: as `take`.
        """
        unpack, tracker = HEADER.unpack_from, self._tracker
        at = written = 0
        while at < len(data):
            begin, header = at, unpack(data, at)
            kind, size = header[1], header[3]
            at += size
            if (self.offset + size - header[4]) % _WRAP:
                raise self._misplaced(header)
            if self._checksum and crc32(data[begin:at]) != _WHOLE and kind != EventType.FORMAT_DESCRIPTION:
                raise self._fails(kind)
            self.offset += size
            if kind in INSIDE and tracker.inside:
                continue  # it ends no transaction, so it can be written together with the next event
            self._writer.write(data[written:at])
            written = at
            self._ended(kind, header[2], data[begin:at])
        if written < at:
            self._writer.write(data[written:])

    def _collect(self, piece: Piece) -> memoryview:
        """Verify the checksum across pieces; keep the whole event only if its content determines a boundary."""
        kind = piece.header[1]
        if piece.first:
            self._crc, self._tail, self._collected = 0, b"", b""
        if kind in _BOUNDARY_EVENTS:
            self._collected += piece.data
        # The last four bytes are the checksum, even if a piece ends within them.
        joined = self._tail + bytes(piece.data[:CHECKSUM_SIZE])
        rest = piece.data[CHECKSUM_SIZE:]
        if len(rest) >= CHECKSUM_SIZE:
            self._crc = crc32(rest[:-CHECKSUM_SIZE], crc32(joined, self._crc))
            self._tail = bytes(rest[-CHECKSUM_SIZE:])
        else:
            joined += bytes(rest)
            self._crc = crc32(joined[:-CHECKSUM_SIZE], self._crc)
            self._tail = joined[-CHECKSUM_SIZE:]
        if piece.last and self._checksum and self._crc != int.from_bytes(self._tail, "little"):
            raise self._fails(kind)
        return memoryview(self._collected)

    def _ended(self, kind: int, server_id: int, event: memoryview) -> None:
        body = b""
        if kind in _BOUNDARY_EVENTS:
            trailer = CHECKSUM_SIZE if self._checksum else 0
            body = bytes(event[HEADER_SIZE : len(event) - trailer])
        elif kind == EventType.FORMAT_DESCRIPTION:
            self._describe(bytes(event))
        elif self._skip_to and kind in BEGINNINGS:
            self.gtids = set_before_file(bytes(event[:-CHECKSUM_SIZE] if self._checksum else event))
        if self._tracker.feed(kind, body, server_id):
            self._passed_boundary()
        else:
            reach(CrashPoint.RELAY_MID_TRANSACTION)
        if self._skip_to:
            self._passed_skipped()

    def _passed_boundary(self) -> None:
        self.boundary = self.offset
        writer = self._writer
        if writer.size >= CUT_BYTES or time.monotonic() - self._since >= CUT_SECONDS:
            self._cut()

    def _passed_skipped(self) -> None:
        """Count what is read but not written, and end the skipping."""
        completed = self._tracker.completed
        if completed is not None and self.gtids is not None:
            self.gtids = self.gtids.add(completed)
        if self.offset < self._skip_to:
            return
        if self.boundary != self._skip_to:
            raise CorruptBinlog(
                f"{self.binlog_file}:{self._skip_to} is not a transaction boundary",
                hint="use a position from SHOW MASTER STATUS or SHOW BINLOG EVENTS",
                nearest=self.boundary,
            )
        self._skip_to = 0

    def _describe(self, event: bytes) -> None:
        self._checksum = parse_format_description(event, self.binlog_file).checksum
        self._writer.describe(event)

    def tick(self, *, at_once: bool = False) -> None:
        """Call regularly: publishes transactions that have waited for a second, or all whole ones `at_once`."""
        if self._writer.size == 0:
            self._since = time.monotonic()
            return
        # A long transaction must not delay those before it: its bytes so far move to the next segment, if not too many.
        waiting = self.boundary > self._writer.start and self.offset - self.boundary <= CUT_BYTES
        if waiting and (at_once or time.monotonic() - self._since >= CUT_SECONDS):
            self._cut()

    def _cut(self) -> None:
        self._writer.cut(self.boundary)
        self._since = time.monotonic()

    def next_file(self, name: str) -> None:
        """Continue with the first event of file `name`.

        Raises:
            CorruptBinlog: the file number is not the next one. PositionLost: `skip_to` is beyond the end of the file.
        """
        if self.skipping:
            raise PositionLost(
                f"{self.binlog_file} ends at {self.offset}, before {self._skip_to}",
                hint="correct the position in `meta`",
            )
        if file_number(name) != file_number(self.binlog_file) + 1:
            raise CorruptBinlog(
                f"{self.binlog_file} is followed by {name}",
                hint="a binlog file is missing: restore it, or start again from a snapshot",
            )
        self.close()
        self._writer = SegmentWriter(self._folder, name, FIRST_OFFSET, b"")
        self._tracker = BoundaryTracker(named=False)
        self.binlog_file, self.offset, self.boundary = name, FIRST_OFFSET, FIRST_OFFSET
        self._since = time.monotonic()
        reach(CrashPoint.RELAY_ROTATED)

    def close(self) -> None:
        """Publish all whole transactions; an incomplete one is dropped and read again later."""
        if self.skipping:
            return
        if self.offset > self.boundary:
            log.info("incomplete transaction dropped", file=self.binlog_file, offset=self.boundary)
        self._writer.discard_from(self.boundary)

    def _misplaced(self, header: EventFields) -> CorruptBinlog:
        return self._corrupt(
            f"the header of a {event_name(header[1])} event states end {header[4]}: bytes are missing before it"
        )

    def _fails(self, kind: int) -> CorruptBinlog:
        return self._corrupt(f"a {event_name(kind)} event fails its checksum")

    def _corrupt(self, what: str) -> CorruptBinlog:
        return CorruptBinlog(
            f"{what} ({self.binlog_file}:{self.offset})",
            hint="if it happens again, the server's binlog file or the network corrupts bytes",
        )


def checksum_holds(event: memoryview) -> bool:
    """Whether the last four bytes of a whole event are the CRC32 of the bytes before."""
    return crc32(event) == _WHOLE
