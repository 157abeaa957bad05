"""Detects transaction boundaries from the events alone, without decoding rows.

The relay cuts its segments at these boundaries, and landing collects the GTIDs that a segment completes.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from mmap import MADV_DONTNEED, MAP_PRIVATE, PROT_READ, mmap
from struct import Struct
from typing import BinaryIO

from dmdelta.binlog.events.format_description import parse_format_description
from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.gtid_skip import MYSQL_GTIDS, hop
from dmdelta.binlog.events.header import (
    GTID_EVENTS,
    HEADER,
    HEADER_SIZE,
    QUERY_EVENTS,
    ROWS_EVENTS,
    EventHeader,
    EventType,
    parse_header,
)
from dmdelta.binlog.events.query import parse_query
from dmdelta.binlog.events.statement import StatementKind, classify
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.gtid import GtidRun, extend, run_of
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment

_HEADER_PACK = Struct("<IBIIIH").pack
_HEAD = Struct("<4xBII").unpack_from
"""Type, server id, size."""
_RELEASE_BYTES = 32 << 20
_WITH_BODY = GTID_EVENTS | QUERY_EVENTS
"""Events whose body the tracker needs."""
_ENDS = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD})
_STATEMENTS = frozenset({EventType.EXECUTE_LOAD_QUERY, EventType.INCIDENT})
INSIDE = ROWS_EVENTS | {
    EventType.TABLE_MAP,
    EventType.ROWS_QUERY,
    EventType.MARIADB_ANNOTATE_ROWS,
    EventType.INTVAR,
    EventType.RAND,
    EventType.USER_VAR,
    EventType.BEGIN_LOAD_QUERY,
    EventType.APPEND_BLOCK,
}
"""Events that only occur before the end of a transaction or statement: within one they carry no information."""
_CLOSING = frozenset({StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK})


_BEGIN = b"\0BEGIN"
"""The end of nearly every transaction's first query event: the NUL after the database name, and the statement."""


class BoundaryTracker:
    """Feed it every event in log order.

    Attributes:
        gtid: the GTID's text of the transaction that the last event belongs to, even if that event completed it; None
            for an anonymous one and before the first.
        completed: the text of the GTID that the last event completed, None if it completed none.
    """

    def __init__(self, *, named: bool = True) -> None:
        """`named` False: `gtid` and `completed` are not needed, so that MySQL's GTID events need not be parsed."""
        self._named = named
        self.gtid: str | None = None
        self.completed: str | None = None
        self._started = False
        self._explicit = False
        """A transaction was opened explicitly: only a commit, rollback, XID or XA PREPARE ends it."""

    @property
    def inside(self) -> bool:
        """Whether a transaction has started and not ended."""
        return self._started

    def feed(self, event_type: int, body: bytes, server_id: int = 0) -> bool:
        """True if a transaction boundary follows the event.

        `body` is the event without header and checksum. Only GTID and query events need it; b"" is sufficient for
        others. `server_id` is the header's: MariaDB's GTIDs contain it.

        Raises:
            CorruptBinlog: a GTID or query event is truncated.
        """
        self.completed = None
        if event_type in GTID_EVENTS:
            if not self._named and event_type != EventType.MARIADB_GTID:
                self._started, self._explicit = True, False
                return False
            gtid = parse_gtid(_whole(event_type, body, server_id))
            self.gtid, self._started, self._explicit = gtid.text, True, gtid.implicit_begin
            return False
        if event_type in _ENDS:
            return self._end()
        if event_type in QUERY_EVENTS:
            return self._query(body, event_type)
        if event_type in INSIDE:
            self._started = True
            return False
        if event_type in _STATEMENTS and not self._explicit:
            return self._end()
        return not self._started

    def _query(self, body: bytes, event_type: int) -> bool:
        if event_type == EventType.QUERY and body.endswith(_BEGIN):
            self._started = self._explicit = True
            return False
        try:
            kind = classify(parse_query(_whole(event_type, body, 0)).sql).kind
        except UnsupportedEvent:
            # The decoder reports it; here only its end matters, which is known.
            kind = StatementKind.ADMIN
        if kind in (StatementKind.BEGIN, StatementKind.XA_START):
            self._started = self._explicit = True
            return False
        if kind in _CLOSING or not self._explicit:
            return self._end()
        return False

    def _end(self) -> bool:
        self.completed = self.gtid if self._started else None
        self._started = self._explicit = False
        return True


def _whole(event_type: int, body: bytes, server_id: int) -> bytes:
    """A body with a header prepended, as the parsers expect."""
    return _HEADER_PACK(0, event_type, server_id, HEADER_SIZE + len(body), 0, 0) + body


@dataclass(frozen=True, slots=True)
class SegmentLog:
    """A segment file: [first, end) of `data` is the log; byte `at` of it is byte `at + shift` of the server's file."""

    data: mmap | bytes
    first: int
    end: int
    shift: int
    trailer: int


@contextmanager
def opened_log(stream: BinaryIO, segment: Segment) -> Iterator[SegmentLog]:
    """A segment's file, memory-mapped.

    Raises:
        CorruptBinlog: not a binlog file, or its size does not match the segment.
    """
    with ExitStack() as stack:
        data: mmap | bytes
        try:
            # A private mapping also works on mounted object stores, where a shared one does not.
            data = stack.enter_context(mmap(stream.fileno(), 0, flags=MAP_PRIVATE, prot=PROT_READ))
        except (OSError, ValueError):  # not a real file, an empty one, or mapping not supported
            data = stream.read()
        if data[:FIRST_OFFSET] != MAGIC:
            raise CorruptBinlog(f"{segment.path} is not a binlog file", hint="a binlog file starts with fe 62 69 6e")
        if len(data) < FIRST_OFFSET + HEADER_SIZE:
            raise _cut(segment, segment.start)
        behind = FIRST_OFFSET + HEADER.unpack_from(data, FIRST_OFFSET)[3]
        first = FIRST_OFFSET if segment.start == FIRST_OFFSET else behind
        if behind > len(data) or first + segment.size != len(data):
            raise _cut(segment, segment.start + max(len(data) - first, 0))
        trailer = parse_format_description(data[FIRST_OFFSET:behind], segment.path).trailer
        yield SegmentLog(data, first, len(data), segment.start - first, trailer)


def log_events(log: SegmentLog, segment: Segment, at: int) -> Iterator[tuple[int, int, int, int]]:
    """(type, server id, start, stop) of every event from byte `at` of the mapped file, as offsets in it.

    Raises:
        CorruptBinlog: a truncated event, or inconsistent sizes.
    """
    data, end, smallest, unpack = log.data, log.end, HEADER_SIZE + log.trailer, _HEAD
    released = at
    while at < end:
        if at + HEADER_SIZE > end:
            raise _cut(segment, at + log.shift)
        kind, server_id, size = unpack(data, at)
        stop = at + size
        if size < smallest or stop > end:
            raise _cut(segment, at + log.shift)
        yield kind, server_id, at, stop
        at = stop
        if at - released > _RELEASE_BYTES:
            released = at
            _release(data)


def _release(data: mmap | bytes) -> None:
    """Release the pages that have been read: they would count as this process's memory."""
    if isinstance(data, mmap):
        data.madvise(MADV_DONTNEED)


def walk_events(stream: BinaryIO, segment: Segment) -> Iterator[tuple[EventHeader, bytes]]:
    """(header, body) of every event of [segment.start, segment.end); reads only what determines boundaries.

    The body is b"" for all but GTID and query events. Checksums are not verified: `decode_segment` does that.

    Raises:
        CorruptBinlog: not a binlog file, a truncated event, or inconsistent sizes.
    """
    with opened_log(stream, segment) as log:
        for kind, _server_id, at, stop in log_events(log, segment, log.first):
            body = log.data[at + HEADER_SIZE : stop - log.trailer] if kind in _WITH_BODY else b""
            yield parse_header(log.data[at : at + HEADER_SIZE], 0, at + log.shift), body


def scan_gtids(stream: BinaryIO, segment: Segment) -> list[GtidRun]:
    """The GTIDs of the transactions that the segment completes, in log order.

    The content of a transaction is skipped if its GTID event contains its length: `decode_segment` verifies it.

    Raises:
        CorruptBinlog: as `walk_events`.
    """
    tracker, runs = BoundaryTracker(), list[GtidRun]()
    with opened_log(stream, segment) as log:
        at = log.first
        while at < log.end:
            # A hop ends at a GTID event, which resets the tracker: skipped events need not be fed.
            at = hop(log.data, at, log.end, log.trailer, runs)
            at = _walk(log, segment, at, tracker, runs)
    return runs


def _walk(log: SegmentLog, segment: Segment, at: int, tracker: BoundaryTracker, runs: list[GtidRun]) -> int:
    """Feed the tracker from `at` up to the next GTID event of MySQL, at least one event; returns its offset."""
    data, trailer, begin = log.data, log.trailer, at
    for kind, server_id, start, stop in log_events(log, segment, at):
        if kind in MYSQL_GTIDS and start > begin:
            return start
        tracker.feed(kind, data[start + HEADER_SIZE : stop - trailer] if kind in _WITH_BODY else b"", server_id)
        if tracker.completed is not None:
            extend(runs, run_of(tracker.completed))
    return log.end


def _cut(segment: Segment, offset: int) -> CorruptBinlog:
    return CorruptBinlog(
        f"{segment.path} is truncated or damaged",
        hint="delete the segment; the relay fetches it again",
        binlog_file=segment.binlog_file,
        offset=offset,
    )
