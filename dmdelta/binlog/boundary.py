"""Where transactions begin and end, told from the events alone and without a look at any row.

The relay cuts its segments at these boundaries, and landing counts the GTIDs that a segment completes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO

from dmdelta.binlog.events import (
    GTID_EVENTS,
    HEADER,
    HEADER_SIZE,
    QUERY_EVENTS,
    ROWS_EVENTS,
    EventHeader,
    EventType,
    parse_header,
)
from dmdelta.binlog.format_description import parse_format_description
from dmdelta.binlog.gtid import parse_gtid
from dmdelta.binlog.query import parse_query
from dmdelta.binlog.statement import StatementKind, classify
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment

_HEADER_PACK = Struct("<IBIIIH").pack
_TELLING = GTID_EVENTS | QUERY_EVENTS
"""Events whose body the tracker looks at."""
_ENDS = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD})
_STATEMENTS = frozenset({EventType.EXECUTE_LOAD_QUERY, EventType.INCIDENT})
_INSIDE = ROWS_EVENTS | {
    EventType.TABLE_MAP,
    EventType.ROWS_QUERY,
    EventType.MARIADB_ANNOTATE_ROWS,
    EventType.INTVAR,
    EventType.RAND,
    EventType.USER_VAR,
    EventType.BEGIN_LOAD_QUERY,
    EventType.APPEND_BLOCK,
}
"""Events that only occur on the way to the end of a transaction or statement."""
_CLOSING = frozenset({StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK})


_BEGIN = b"\0BEGIN"
"""How nearly every transaction's query event ends: the database's name, its NUL, the statement."""


class BoundaryTracker:
    """Feed it every event in log order.

    Attributes:
        gtid: the GTID's text of the transaction that the last event belongs to, also when that event has completed it;
            None for an anonymous one and before the first.
        completed: the text of the GTID that the last event completed, None if it completed none.
    """

    def __init__(self, *, named: bool = True) -> None:
        """`named` False: `gtid` and `completed` are not wanted, MySQL's GTID events need no parsing then."""
        self._named = named
        self.gtid: str | None = None
        self.completed: str | None = None
        self._begun = False
        self._explicit = False
        """A BEGIN of its own kind is open: only a commit, rollback, XID or XA PREPARE ends it."""

    @property
    def inside(self) -> bool:
        """A transaction has begun and not ended."""
        return self._begun

    def feed(self, event_type: int, body: bytes, server_id: int = 0) -> bool:
        """True when a transaction boundary lies right after the event.

        `body` is the event without header and checksum. Only GTID and query events need theirs; for the others b"" will
        do. `server_id` is the header's: MariaDB's GTIDs hold it.

        Raises:
            CorruptBinlog: a GTID or query event is cut short.
        """
        self.completed = None
        if event_type in GTID_EVENTS:
            if not self._named and event_type != EventType.MARIADB_GTID:
                self._begun, self._explicit = True, False
                return False
            gtid = parse_gtid(_whole(event_type, body, server_id))
            self.gtid, self._begun, self._explicit = gtid.text, True, gtid.implicit_begin
            return False
        if event_type in _ENDS:
            return self._end()
        if event_type in QUERY_EVENTS:
            return self._query(body, event_type)
        if event_type in _INSIDE:
            self._begun = True
            return False
        if event_type in _STATEMENTS and not self._explicit:
            return self._end()
        return not self._begun

    def _query(self, body: bytes, event_type: int) -> bool:
        if event_type == EventType.QUERY and body.endswith(_BEGIN):
            self._begun = self._explicit = True
            return False
        try:
            kind = classify(parse_query(_whole(event_type, body, 0)).sql).kind
        except UnsupportedEvent:
            # What it means is the decoder's to say; where it ends is plain.
            kind = StatementKind.ADMIN
        if kind in (StatementKind.BEGIN, StatementKind.XA_START):
            self._begun = self._explicit = True
            return False
        if kind in _CLOSING or not self._explicit:
            return self._end()
        return False

    def _end(self) -> bool:
        self.completed = self.gtid if self._begun else None
        self._begun = self._explicit = False
        return True


def _whole(event_type: int, body: bytes, server_id: int) -> bytes:
    """A body with a header in front, as the parsers take it."""
    return _HEADER_PACK(0, event_type, server_id, HEADER_SIZE + len(body), 0, 0) + body


def walk_events(stream: BinaryIO, segment: Segment) -> Iterator[tuple[EventHeader, bytes]]:
    """(header, body) of every event of [segment.start, segment.end); seeks over what no boundary depends on.

    The body is b"" for all but GTID and query events. Checksums are not verified: `decode_segment` does.

    Raises:
        CorruptBinlog: not a binlog file, an event cut short, or sizes that do not add up.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        raise CorruptBinlog(f"{segment.path} is no binlog file", hint="a binlog file begins with fe 62 69 6e")
    raw = stream.read(HEADER_SIZE)
    if len(raw) < HEADER_SIZE:
        raise _cut(segment, segment.start)
    size = HEADER.unpack(raw)[3]
    first = raw + stream.read(max(size - HEADER_SIZE, 0))
    if len(first) < size:
        raise _cut(segment, segment.start)
    trailer = parse_format_description(first, segment.path).trailer
    offset = segment.start
    if offset == FIRST_OFFSET:
        yield parse_header(first, 0, offset), b""
        offset += len(first)
    while True:
        raw = stream.read(HEADER_SIZE)
        if not raw:
            break
        if len(raw) < HEADER_SIZE:
            raise _cut(segment, offset)
        header = parse_header(raw, 0, offset)
        rest = header.size - HEADER_SIZE
        if rest < trailer or header.end > segment.end:
            raise _cut(segment, offset)
        body = b""
        if header.event_type in _TELLING:
            whole = stream.read(rest)
            if len(whole) < rest:
                raise _cut(segment, offset)
            body = whole[: rest - trailer]
        else:
            stream.seek(rest, 1)
        yield header, body
        offset = header.end
    # Seeking goes past the end of a file that is cut short without a word.
    if offset != segment.end or stream.tell() != stream.seek(0, 2):
        raise _cut(segment, offset)


def _cut(segment: Segment, offset: int) -> CorruptBinlog:
    return CorruptBinlog(
        f"{segment.path} is cut short or damaged",
        hint="delete the segment and let the relay fetch it again",
        binlog_file=segment.binlog_file,
        offset=offset,
    )


def scan_gtids(stream: BinaryIO, segment: Segment) -> list[str]:
    """The GTIDs of the transactions that the segment completes, in log order.

    Raises:
        CorruptBinlog: as `walk_events`.
    """
    tracker, found = BoundaryTracker(), []
    for header, body in walk_events(stream, segment):
        tracker.feed(header.event_type, body, header.server_id)
        if tracker.completed is not None:
            found.append(tracker.completed)
    return found
