"""Reads the events of a log as bytes: from segments and whole binlog files, or from a server's stream.

Format: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, BinaryIO
from zlib import crc32

from dmdelta.errors import CorruptBinlog
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment
from dmdelta.segments import open_segment

if TYPE_CHECKING:
    from pymysql.connections import Connection

_HEADER = Struct("<IBIIIH")
"""Timestamp, type, server id, size, end of the event modulo 2^32, flags."""
_CHECKSUM = 4
_CRC32 = 1
_ROTATE, FORMAT_DESCRIPTION, _HEARTBEAT, _HEARTBEAT_V2 = 4, 15, 27, 41
_ARTIFICIAL = 0x20
_COM_BINLOG_DUMP = 0x12
_NON_BLOCKING = 1
_DUMP = Struct("<IHI")
_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One event of a binlog.

    Attributes:
        file: the server's name of the binlog file.
        start: byte offset of the event in that file; None for an event that the file does not have at this place (a
            repeated or artificial format description).
        data: header and body, followed by 4 bytes of checksum; zeros if the log has none.
    """

    file: str
    start: int | None
    kind: int
    data: bytes

    @property
    def end(self) -> int | None:
        """Byte offset after the event, without an added checksum."""
        return None if self.start is None else self.start + int.from_bytes(self.data[9:13], "little")


@dataclass(slots=True)
class _Checksums:
    """Whether the events of a file end in a checksum, according to its format description."""

    used: bool = False

    def padded(self, kind: int, event: bytes) -> bytes:
        if kind == FORMAT_DESCRIPTION:
            self.used = event[-_CHECKSUM - 1] == _CRC32
            return event
        return event if self.used else event + bytes(_CHECKSUM)


def segment_events(segment: Segment) -> Iterator[RawEvent]:
    """The events of a segment or of a whole binlog file, in order.

    Raises:
        CorruptBinlog: the file is not a binlog, ends inside an event, or does not exist.
    """
    try:
        stream = open_segment(segment)
    except FileNotFoundError as error:
        raise CorruptBinlog(
            f"{segment.path} does not exist", hint="it was purged meanwhile: run the command again"
        ) from error
    with stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise CorruptBinlog(f"{segment.path} is not a binlog file", hint="restore it, or remove it from the folder")
        checksums, at = _Checksums(), segment.start
        repeated = segment.start != FIRST_OFFSET
        while repeated or at < segment.end:
            kind, event = _read_event(stream, segment)
            start = None if repeated else at
            at += 0 if repeated else len(event)
            repeated = False
            yield RawEvent(segment.binlog_file, start, kind, checksums.padded(kind, event))


def _read_event(stream: BinaryIO, segment: Segment) -> tuple[int, bytes]:
    head = stream.read(_HEADER.size)
    if len(head) == _HEADER.size:
        _, kind, _, size, _, _ = _HEADER.unpack(head)
        body = stream.read(size - _HEADER.size) if size >= _HEADER.size else b""
        if size >= _HEADER.size and len(body) == size - _HEADER.size:
            return kind, head + body
    raise CorruptBinlog(f"{segment.path} ends inside an event", hint="restore the file from the source or an archive")


@dataclass(slots=True)
class _Stream:
    """The position of a server's stream."""

    file: str
    end: int
    checksums: _Checksums = field(default_factory=_Checksums)

    def take(self, event: bytes) -> RawEvent | None:
        """The event with its position; None for an event that only states a position."""
        timestamp, kind, _, size, end, flags = _HEADER.unpack_from(event)
        # A real event has 0 only if it ends at a multiple of 4 GiB.
        artificial = (end == 0 and (self.end + size) % _WRAP != 0) or bool(flags & _ARTIFICIAL)
        if kind in (_HEARTBEAT, _HEARTBEAT_V2):
            return None
        if kind == _ROTATE and (artificial or timestamp == 0):
            self.file, self.end = _named(event)
            return None
        if artificial:
            # An artificial format description is still needed for its body.
            return RawEvent(self.file, None, kind, self.checksums.padded(kind, event))
        while end < self.end % _WRAP:
            end += _WRAP  # within 4 GiB of the last event
        end += self.end // _WRAP * _WRAP
        self.end = end
        return RawEvent(self.file, end - size, kind, self.checksums.padded(kind, event))


def _named(event: bytes) -> tuple[str, int]:
    """The file and offset of a rotate event; it may have a checksum before the format is known."""
    if crc32(event[:-_CHECKSUM]) == int.from_bytes(event[-_CHECKSUM:], "little"):
        event = event[:-_CHECKSUM]
    at = int.from_bytes(event[_HEADER.size : _HEADER.size + 8], "little")
    return event[_HEADER.size + 8 :].decode(), at


def server_events(connection: "Connection[Any]", file: str, offset: int = FIRST_OFFSET) -> Iterator[RawEvent]:
    """The events of a server's log from an offset (bytes, the start of an event) to the current end of the log.

    The connection cannot be used for anything else afterwards; the caller closes it.

    Raises:
        pymysql.MySQLError: the server refuses, or the connection breaks.
    """
    wire: Any = connection
    with connection.cursor() as cursor:
        # Announces support for checksums; files without them are sent unchanged.
        cursor.execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")
        cursor.execute("SET @mariadb_slave_capability = 4")
        cursor.execute("SET net_write_timeout = 3600")  # bronze is read between two packets
    offset = offset if offset < _WRAP else FIRST_OFFSET
    server_id = random.randrange(1 << 30, (1 << 32) - 2)
    wire._execute_command(_COM_BINLOG_DUMP, _DUMP.pack(offset, _NON_BLOCKING, server_id) + file.encode())  # noqa: SLF001
    stream = _Stream(file, offset)
    while True:
        packet = wire._read_packet()  # noqa: SLF001
        if packet.is_eof_packet():
            return
        event = stream.take(packet.get_all_data()[1:])
        if event is not None:
            yield event
