"""The DDL statements of a segment, and the tables whose rows it contains, found by event headers with few body reads.

For servers that log no column names: decoding their rows requires the structure of a table at each position.
"""

from io import BytesIO
from typing import BinaryIO

from dmdelta.binlog.events.boundary import SegmentLog, log_events, opened_log
from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.header import GTID_EVENTS, HEADER_SIZE, QUERY_EVENTS, EventType
from dmdelta.binlog.events.payload import inner_events
from dmdelta.binlog.events.query import Query, parse_query
from dmdelta.binlog.events.skipping import is_skipped
from dmdelta.binlog.events.statement import StatementKind, classify
from dmdelta.binlog.rows.decode_options import WithoutSession, as_written
from dmdelta.binlog.rows.table_map import TABLE_ID_SIZE, table_names
from dmdelta.binlog.values.collations import charset_of
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.gtid import GtidSet
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.segment import Segment
from dmdelta.model.statement import LoggedStatement, Session

_QUERIES = frozenset(map(int, QUERY_EVENTS))
_PAYLOAD, _TABLE_MAP, _MARIADB_GTID = (
    int(EventType.TRANSACTION_PAYLOAD),
    int(EventType.TABLE_MAP),
    int(EventType.MARIADB_GTID),
)
_BEGIN, _COMMIT = b"\0BEGIN", b"\0COMMIT"
"""The ends of nearly every transaction's query events: the NUL after the database name, and the statement."""
_PEEK = 4096
"""Bytes of a compressed transaction that contain its first statement, unless that is a long one."""


def scan_statements(
    stream: BinaryIO,
    segment: Segment,
    without_session: WithoutSession = as_written,
    skipped: GtidSet | None = None,
) -> list[LoggedStatement]:
    """The statements of a segment that change structures, in log order.

    Args:
        without_session: as in `DecodeOptions`.
        skipped: the transactions that are left out; None: none.

    Raises:
        CorruptBinlog: not a binlog file, a truncated event, or inconsistent sizes.
    """
    statements: list[LoggedStatement] = []
    gtid: tuple[int, int] | None = None
    inside = False
    with opened_log(stream, segment) as log:
        for kind, _server_id, start, stop in log_events(log, segment, log.first):
            if skipped and kind in GTID_EVENTS:
                inside = is_skipped(log.data[start : stop - log.trailer], skipped)
            if inside:
                continue
            if kind in _QUERIES:
                event = log.data[start : stop - log.trailer]
                if event.endswith((_BEGIN, _COMMIT)):
                    continue
            elif kind == _PAYLOAD:
                inner = _first_query(log, start, stop)
                if inner is None:
                    continue
                event = inner
            else:
                if kind == _MARIADB_GTID:
                    gtid = start, stop
                continue
            query = parse_query(event)
            if _is_ddl(query) and not (gtid and _is_without_effect(log, *gtid)):
                position = Position(segment.epoch, segment.binlog_file, start + log.shift)
                sql = without_session(query.sql, Session(query.schema, query.explicit_timestamps))
                statements.append(LoggedStatement(position, query.schema, sql, _charset(query.server_collation)))
    return statements


def scan_tables(stream: BinaryIO, segment: Segment) -> set[TableName] | None:
    """The tables whose rows a segment contains; None if it has compressed transactions, which are not decompressed for
    it.

    Raises:
        CorruptBinlog: as `scan_statements`, or a truncated table map.
    """
    tables: dict[bytes, TableName] = {}
    with opened_log(stream, segment) as log:
        for kind, _server_id, start, stop in log_events(log, segment, log.first):
            if kind == _PAYLOAD:
                return None
            if kind == _TABLE_MAP:
                body = log.data[start + HEADER_SIZE + TABLE_ID_SIZE : stop - log.trailer]
                if body not in tables:  # most table maps are repeated
                    tables[body] = table_names(log.data[start : stop - log.trailer])
    return set(tables.values())


def _first_query(log: SegmentLog, start: int, stop: int) -> bytes | None:
    """The first query event of a compressed transaction, unless it is BEGIN: CREATE TABLE … SELECT."""
    start, stop = start + HEADER_SIZE, stop - log.trailer
    event: bytes | None = None
    for end in (min(start + _PEEK, stop), stop):
        try:
            event = next(inner_events(BytesIO(log.data[start:end])), None)
        except CorruptBinlog:
            if end == stop:
                raise
        if event is not None:
            break
    is_statement = event is not None and event[4] in _QUERIES and not event.endswith(_BEGIN)
    return event if is_statement else None


def _is_ddl(query: Query) -> bool:
    try:
        return classify(query.sql).kind is StatementKind.DDL
    except UnsupportedEvent:
        return False  # the decoder reports it


def _is_without_effect(log: SegmentLog, start: int, stop: int) -> bool:
    """Whether the statement after MariaDB's GTID event is not what changes the structure."""
    return parse_gtid(bytes(log.data[start : stop - log.trailer])).without_effect


def _charset(collation: int) -> str | None:
    try:
        return charset_of(collation) if collation else None
    except UnsupportedEvent:
        return None
