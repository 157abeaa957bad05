"""Decodes events with mysql-replication (pymysqlreplication); no other module imports it.

Each event is decoded by itself, so that an unreadable event does not affect others, and each one is counted.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from dmdelta.errors import ConfigError
from dmdelta.model.schema import SEQUENCE_COLUMNS, TableName
from dmdelta.verification.events import MAYBE_SEQUENCE, LoggedColumn, LoggedEvent, LoggedImage, LoggedRow, Place
from dmdelta.verification.raw_events import FORMAT_DESCRIPTION, RawEvent

try:
    from pymysql.protocol import MysqlPacket
    from pymysqlreplication import event as lib_event
    from pymysqlreplication import row_event as lib_rows
    from pymysqlreplication.constants import FIELD_TYPE
    from pymysqlreplication.packet import BinLogPacketWrapper
except ImportError as error:
    raise ConfigError(f"verify requires mysql-replication: {error}", hint="pip install 'dmdelta[verify]'") from error

COMPRESSED_TRANSACTION = "compressed transaction"
COMPRESSED_ROWS = "compressed row event"
TAGGED_GTID = "tagged GTID"
NO_TABLE_MAP = "no table map before the row event"

_SEQUENCE_KINDS = (*(FIELD_TYPE.LONGLONG,) * 6, FIELD_TYPE.TINY, FIELD_TYPE.LONGLONG)
_TABLE_MAP, _GTID, _ANONYMOUS, _PAYLOAD, _TAGGED, _MARIADB_GTID = 19, 33, 34, 40, 42, 162
_OPS = {
    **dict.fromkeys((20, 23, 30, 166, 169), "insert"),
    **dict.fromkeys((21, 24, 31, 39, 167, 170), "update"),
    **dict.fromkeys((22, 25, 32, 168, 171), "delete"),
}
_COMPRESSED = frozenset(range(166, 172))
_TABLE_ID = slice(19, 25)
_DUMMY = 0xFFFFFF
"""MySQL ends some statements with a row event of this table, without rows."""
_KINDS = frozenset(vars(FIELD_TYPE)[name] for name in dir(FIELD_TYPE) if name.isupper()) - {FIELD_TYPE.NULL}
_ALLOWED = frozenset(
    [
        lib_event.FormatDescriptionEvent,
        lib_event.GtidEvent,
        lib_event.MariadbGtidEvent,
        lib_rows.TableMapEvent,
        lib_rows.WriteRowsEvent,
        lib_rows.UpdateRowsEvent,
        lib_rows.DeleteRowsEvent,
        lib_rows.PartialUpdateRowsEvent,
    ]
)


class _Context:
    """The attributes that mysql-replication reads from its connection to the server."""

    charset = "utf8"

    def __init__(self, dbms: str) -> None:
        self._dbms = dbms

    def _get_dbms(self) -> str:
        return self._dbms


class Decoder:
    """Decodes a log event by event; keeps the table maps of the current file.

    Args:
        mariadb: whether the log is MariaDB's.
    """

    def __init__(self, *, mariadb: bool) -> None:
        self._context = _Context("mariadb" if mariadb else "mysql")
        self._mariadb = mariadb
        self._version: tuple[int, ...] = (8, 0, 0)
        self._lengths: tuple[int, ...] | None = None
        self._tables: dict[int, Any] = {}
        self._columns: dict[int, tuple[LoggedColumn, ...]] = {}
        self._unread: dict[int, tuple[TableName | None, str]] = {}
        self._sequences: set[int] = set()
        self._gtid: str | None = None
        self._unread_gtid: str | None = None

    def feed(self, event: RawEvent) -> LoggedEvent | None:
        """The row changes of an event; None for an event without any."""
        kind = event.kind
        if kind == FORMAT_DESCRIPTION:
            self._begin_file(event)
        elif kind in (_GTID, _MARIADB_GTID, _ANONYMOUS, _TAGGED):
            self._begin_transaction(event)
        elif kind == _TABLE_MAP:
            self._map(event)
        elif event.start is not None and kind == _PAYLOAD:
            place = (event.file, event.start)
            return LoggedEvent(place, None, None, self._gtid, self._unread_gtid, unread=COMPRESSED_TRANSACTION)
        elif event.start is not None and kind in _OPS:
            return self._rows(event, (event.file, event.start))
        return None

    def _begin_file(self, event: RawEvent) -> None:
        # The server restarts table ids when it starts, and then begins a new file.
        self._tables, self._columns, self._unread, self._sequences = {}, {}, {}, set()
        self._lengths = None
        described = self._wrapped(event.data, {}).event
        self._version, self._lengths = described.mysql_version, described.post_header_len

    def _begin_transaction(self, event: RawEvent) -> None:
        self._gtid, self._unread_gtid = None, None
        if event.kind == _TAGGED:
            self._unread_gtid = TAGGED_GTID
        elif event.kind != _ANONYMOUS:
            self._gtid = self._wrapped(event.data, {}).event.gtid

    def _map(self, event: RawEvent) -> None:
        number = _table_id(event)
        mapped: dict[int, Any] = {}
        self._tables.pop(number, None)
        self._unread.pop(number, None)
        self._sequences.discard(number)
        try:
            self._wrapped(event.data, mapped)
            table = mapped[number]
            unknown = sorted({column.type for column in table.columns} - _KINDS)
            if not unknown:
                columns = _columns(table)
                if self._mariadb and tuple(column.name for column in columns) == SEQUENCE_COLUMNS:
                    self._sequences.add(number)
                    return
                if not (self._mariadb and _may_be_sequence(columns)):
                    self._tables[number], self._columns[number] = table, columns
                    return
            why = f"column type {unknown[0]}" if unknown else MAYBE_SEQUENCE
        except Exception as error:  # noqa: BLE001 - the library may raise anything; the event is counted as not read
            why = f"table map: {type(error).__name__}"
        self._unread[number] = _mapped_name(event.data), why

    def _rows(self, event: RawEvent, place: Place) -> LoggedEvent | None:
        number, op = _table_id(event), _OPS[event.kind]
        table = self._tables.get(number)
        if table is None:
            if number == _DUMMY or number in self._sequences:
                return None
            name, why = self._unread.get(number, (None, NO_TABLE_MAP))
            return LoggedEvent(place, name, op, self._gtid, self._unread_gtid, unread=why)
        compressed = event.kind in _COMPRESSED
        rows, unread = (None, COMPRESSED_ROWS) if compressed else self._read(event, table)
        return LoggedEvent(
            place=place,
            table=(table.schema, table.table),
            op=op,
            gtid=self._gtid,
            unread_gtid=self._unread_gtid,
            columns=self._columns[number],
            rows=rows,
            unread=unread,
        )

    def _read(self, event: RawEvent, table: Any) -> tuple[list[LoggedRow] | None, str | None]:
        """The rows of an event, or why mysql-replication cannot read them."""
        try:
            read = self._wrapped(event.data, {table.table_id: table}).event
            rows = [_row(_OPS[event.kind], row) for row in read.rows]
        except Exception as error:  # noqa: BLE001 - as above
            return None, f"row event: {type(error).__name__}"
        if read.packet.read_bytes != read.event_size:
            return None, "row event: read beyond its end"
        return rows, None

    def _wrapped(self, data: bytes, tables: dict[int, Any]) -> Any:
        size = len(data).to_bytes(4, "little")  # includes the checksum, which may have been added
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it calls datetime.utcfromtimestamp
            return BinLogPacketWrapper(
                MysqlPacket(b"\0" + data[:9] + size + data[13:], "utf8"),
                tables,
                self._context,
                self._version,
                use_checksum=True,
                allowed_events=_ALLOWED,
                only_tables=None,
                ignored_tables=None,
                only_schemas=None,
                ignored_schemas=None,
                freeze_schema=False,
                ignore_decode_errors=False,
                verify_checksum=False,
                optional_meta_data=True,
                enable_logging=False,
                post_header_lengths=self._lengths,
            )


def _table_id(event: RawEvent) -> int:
    return int.from_bytes(event.data[_TABLE_ID], "little")


def _mapped_name(data: bytes) -> TableName | None:
    """Schema and table of a table map that mysql-replication cannot read."""
    try:
        size = data[27]
        schema, rest = data[28 : 28 + size], data[29 + size :]
        return schema.decode(), rest[1 : 1 + rest[0]].decode()
    except (IndexError, UnicodeDecodeError):
        return None


def _columns(table: Any) -> tuple[LoggedColumn, ...]:
    """The columns of a mapped table.

    Text is read as bytes: a text that Python cannot decode would make all rows of its event unreadable.
    """
    columns = []
    for number, column in enumerate(table.columns, 1):
        named = column.name is not None
        encoding, column.character_set_name = column.character_set_name, "binary"
        if not named:
            column.name = f"@{number}"
        members = column.enum_values or column.set_values
        columns.append(
            LoggedColumn(
                name=column.name,
                kind=column.type,
                named=named,
                unsigned=column.unsigned,
                encoding=encoding,
                members=tuple(members) if members else None,
                fraction=getattr(column, "fsp", 0),
            )
        )
    return tuple(columns)


def _may_be_sequence(columns: Sequence[LoggedColumn]) -> bool:
    """Whether the types are those of a sequence, and the log has no names."""
    kinds = tuple(column.kind for column in columns)
    return kinds == _SEQUENCE_KINDS and not any(column.named for column in columns)


def _row(op: str, row: dict[str, Any]) -> LoggedRow:
    if op == "update":
        return LoggedRow(
            LoggedImage(row["before_values"], row["before_none_sources"]),
            LoggedImage(row["after_values"], row["after_none_sources"]),
        )
    image = LoggedImage(row["values"], row["none_sources"])
    return LoggedRow(None, image) if op == "insert" else LoggedRow(image, None)
