"""Event type codes, flags and the common header.

Format: MySQL internals, "Binary Log Event" (mysql/binlog/event/binlog_event.h); MariaDB, "2-Binlog Event Header".
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct

HEADER_SIZE = 19
CHECKSUM_SIZE = 4
HEADER = Struct("<IBIIIH")
"""timestamp (s), type, server id, size (bytes, header included), log_pos, flags."""


class EventType(IntEnum):
    """Type codes of MySQL (below 160) and MariaDB."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED = 169
    MARIADB_UPDATE_ROWS_COMPRESSED = 170
    MARIADB_DELETE_ROWS_COMPRESSED = 171


class EventFlag(IntFlag):
    """Flags of the header that matter to a reader."""

    BINLOG_IN_USE = 0x01
    IGNORABLE = 0x80


GTID_EVENTS = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID})
QUERY_EVENTS = frozenset({EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED})
ROWS_EVENTS = frozenset(
    {
        EventType.WRITE_ROWS_V1,
        EventType.UPDATE_ROWS_V1,
        EventType.DELETE_ROWS_V1,
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
        EventType.PARTIAL_UPDATE_ROWS,
        EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1,
        EventType.MARIADB_WRITE_ROWS_COMPRESSED,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED,
    }
)

WITHOUT_ROWS = frozenset(
    {
        EventType.FORMAT_DESCRIPTION,
        EventType.STOP,
        EventType.ROTATE,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.PREVIOUS_GTIDS,
        EventType.IGNORABLE,
        EventType.ROWS_QUERY,
        EventType.TRANSACTION_CONTEXT,
        EventType.VIEW_CHANGE,
        EventType.MARIADB_ANNOTATE_ROWS,
        EventType.MARIADB_BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
    }
)
"""Events that change no row."""
STATEMENT_FORMAT = frozenset(
    {
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.LOAD,
        EventType.CREATE_FILE,
        EventType.APPEND_BLOCK,
        EventType.EXEC_LOAD,
        EventType.DELETE_FILE,
        EventType.NEW_LOAD,
        EventType.BEGIN_LOAD_QUERY,
        EventType.EXECUTE_LOAD_QUERY,
    }
)
"""Parts of a change in statement format."""


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The header of one event and the event's position.

    Attributes:
        offset: byte offset of the event's first byte in the server's own binlog file.
        size: bytes of the whole event: header, body and checksum.
        timestamp: seconds since 1970, UTC.
    """

    timestamp: int
    event_type: int
    server_id: int
    size: int
    log_pos: int
    flags: int
    offset: int


def parse_header(data: bytes, at: int, offset: int) -> EventHeader:
    """The header at byte `at` of `data`; `offset` is the event's position in its file."""
    timestamp, event_type, server_id, size, log_pos, flags = HEADER.unpack_from(data, at)
    return EventHeader(
        timestamp=timestamp,
        event_type=event_type,
        server_id=server_id,
        size=size,
        log_pos=log_pos,
        flags=flags,
        offset=offset,
    )


def event_name(event_type: int) -> str:
    """The name of a type code, for messages."""
    try:
        return EventType(event_type).name
    except ValueError:
        return f"event type {event_type}"
