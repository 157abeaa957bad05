"""The query event: a statement with the default schema it was executed in.

Format: mysql/binlog/event/statement_events.h (`Query_event`); MariaDB's compressed variant has a compressed text.
"""

import re
from struct import Struct, error
from typing import NamedTuple

from dmdelta.binlog.events.compression import decompress
from dmdelta.binlog.events.header import HEADER_SIZE, EventType
from dmdelta.binlog.events.quoting import in_default_mode, with_plain_blanks
from dmdelta.binlog.values.charsets import decoder_of
from dmdelta.binlog.values.collations import charset_of
from dmdelta.errors import CorruptBinlog
from dmdelta.model.mysql_sql import NO_BREAK_SPACE

_POST_HEADER = Struct("<IIBHH")
_FLAGS2, _SQL_MODE, _CATALOG, _AUTO_INCREMENT, _CHARSET, _TIME_ZONE, _CATALOG_NZ = range(7)
_FIXED = {_FLAGS2: 4, _SQL_MODE: 8, _AUTO_INCREMENT: 4}
_LC_TIME, _CHARSET_DATABASE, _TABLE_MAP_FOR_UPDATE, _DATA_WRITTEN, _INVOKER, _DATABASES, _MICROSECONDS = range(7, 14)
_EXPLICIT_TIMESTAMPS = 16
_EXPLICIT_FLAG = 1 << 24
"""MariaDB's OPTION_EXPLICIT_DEF_TIMESTAMP; MySQL logs no such flag."""
_TOO_MANY = 254
"""Instead of a number of databases: their names are not logged."""
_SIZES = {
    **_FIXED,
    _CHARSET: 6,
    _LC_TIME: 2,
    _CHARSET_DATABASE: 2,
    _TABLE_MAP_FOR_UPDATE: 8,
    _DATA_WRITTEN: 4,
    _MICROSECONDS: 3,
}
_TIMESTAMP = re.compile(rb"timestamp", re.IGNORECASE)


class Query(NamedTuple):
    """A statement.

    Attributes:
        schema: the session's default schema, empty if it had none.
        sql: the text, with the quotes and escapes of the default sql_mode.
        server_collation: the ID of the session's `collation_server`, the default of CREATE DATABASE; 0 if not logged.
        explicit_timestamps: the text contains TIMESTAMP, and explicit_defaults_for_timestamp is logged as ON.
    """

    schema: str
    sql: str
    server_collation: int = 0
    explicit_timestamps: bool = False


def parse_query(event: bytes) -> Query:
    """Parse the query event (header included, checksum not).

    Raises:
        CorruptBinlog: the event is truncated.
    """
    try:
        _thread, _seconds, schema_size, _error, status_size = _POST_HEADER.unpack_from(event, HEADER_SIZE)
        at = HEADER_SIZE + _POST_HEADER.size
        status = event[at : at + status_size]
        at += status_size
        schema = event[at : at + schema_size].decode()
        text = event[at + schema_size + 1 :]
        if event[4] == EventType.MARIADB_QUERY_COMPRESSED:
            text = decompress(text)
        client, server = _collations(status)
        sql = text.decode("ascii") if text.isascii() else _decode(text, client)
        if NO_BREAK_SPACE in sql and len(sql) == len(text):  # a single-byte character set
            sql = with_plain_blanks(sql, _sql_mode(status))
        if '"' in sql or "\\" in sql:
            sql = in_default_mode(sql, _sql_mode(status))
        explicit = _TIMESTAMP.search(text) is not None and _explicit_timestamps(status)
        return Query(schema, sql, server, explicit)
    except (error, IndexError, ValueError) as damage:
        raise CorruptBinlog("cannot read a query event", hint="report this event to the project") from damage


def _decode(text: bytes, collation: int) -> str:
    charset = charset_of(collation) if collation else "utf8mb4"
    try:
        return decoder_of(charset)(text) if charset != "binary" else text.decode()
    except UnicodeDecodeError:
        # A statement may contain literals in another character set; only its keywords and names matter.
        return text.decode("utf-8", "replace")


def _explicit_timestamps(status: bytes) -> bool:
    """Whether explicit_defaults_for_timestamp is logged as ON: MySQL has a variable, MariaDB one of the flags."""
    at = 0
    while at < len(status):
        code, at = status[at], at + 1
        if code == _EXPLICIT_TIMESTAMPS:
            return status[at] == 1
        if code == _FLAGS2 and int.from_bytes(status[at : at + 4], "little") & _EXPLICIT_FLAG:
            return True
        size = _size(code, status, at)
        if size is None:
            return False
        at += size
    return False


def _size(code: int, status: bytes, at: int) -> int | None:
    """The size of the value at `at`; None for an unknown variable."""
    if code in _SIZES:
        return _SIZES[code]
    if code in (_TIME_ZONE, _CATALOG_NZ):
        return 1 + status[at]
    if code == _CATALOG:
        return 2 + status[at]
    if code == _INVOKER:
        user = 1 + status[at]
        return user + 1 + status[at + user]
    if code != _DATABASES:
        return None
    end = at + 1
    for _ in range(status[at] if status[at] != _TOO_MANY else 0):
        end = status.index(0, end) + 1
    return end - at


def _sql_mode(status: bytes) -> int:
    """The session's sql_mode, which follows the flags; 0, the default one, if it is not logged."""
    at = 1 + _FIXED[_FLAGS2] if status[:1] == bytes((_FLAGS2,)) else 0
    if status[at : at + 1] != bytes((_SQL_MODE,)):
        return 0
    return int.from_bytes(status[at + 1 : at + 1 + _FIXED[_SQL_MODE]], "little")


def _collations(status: bytes) -> tuple[int, int]:
    """The session's character_set_client and collation_server from the status variables, 0 if not present."""
    at = 0
    while at < len(status):
        code = status[at]
        at += 1
        if code == _CHARSET:
            return status[at] | status[at + 1] << 8, status[at + 4] | status[at + 5] << 8
        if code in _FIXED:
            at += _FIXED[code]
        elif code in (_TIME_ZONE, _CATALOG_NZ):
            at += 1 + status[at]
        elif code == _CATALOG:
            at += 2 + status[at]
        else:
            return 0, 0
    return 0, 0
