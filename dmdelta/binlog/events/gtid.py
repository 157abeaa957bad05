"""Parses GTID events of every flavor: text and commit time.

Formats: mysql/binlog/event/control_events.h (`Gtid_event`); tagged GTIDs by mysql/serialization/readme.md; MariaDB,
"GTID_EVENT". Texts: `uuid:gno`, `uuid:tag:gno`, `domain-server-seq`.
"""

from collections.abc import Callable
from enum import IntFlag
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from dmdelta.binlog.events.header import HEADER, HEADER_SIZE, EventType
from dmdelta.binlog.events.xa import xid_text
from dmdelta.errors import CorruptBinlog

_MYSQL = Struct("<B16sq")
_LOGICAL_CLOCK = 2
_CLOCK_SIZE = 17
_TIMESTAMP_SIZE = 7
_ORIGINAL_FOLLOWS = 1 << 55
_LAST_MOMENT = 253_402_300_799_999_999
"""The end of the year 9999 in µs since 1970."""
_MARIADB = Struct("<QIB")
_XID = Struct("<IBB")


class MariadbGtidFlag(IntFlag):
    """Flags of MariaDB's GTID event that determine how it is read."""

    STANDALONE = 1
    GROUP_COMMIT_ID = 2
    PREPARED_XA = 64
    COMPLETED_XA = 128


class MariadbExtraFlag(IntFlag):
    """Flags, of the byte after the fields that `MariadbGtidFlag` determines, of statements without effect."""

    START_ALTER = 2
    ROLLBACK_ALTER = 8


_WITHOUT_EFFECT = int(MariadbExtraFlag.START_ALTER | MariadbExtraFlag.ROLLBACK_ALTER)


class Gtid(NamedTuple):
    """The start of a transaction.

    Attributes:
        text: None for an anonymous transaction.
        committed_us: microseconds since 1970 of the original commit, None if the event does not contain it.
        implicit_begin: MariaDB: the event itself begins the transaction, no BEGIN follows; False before one statement
            without a terminating commit.
        xid: MariaDB: the XA transaction that this event group prepares.
        without_effect: MariaDB with `binlog_alter_two_phase`: the statement that follows only starts, or it failed. One
            that succeeds is logged again where it takes effect.
    """

    text: str | None
    committed_us: int | None = None
    implicit_begin: bool = False
    xid: str | None = None
    without_effect: bool = False


def parse_gtid(event: bytes) -> Gtid:
    """The GTID of a whole event (header included, checksum not).

    Raises:
        CorruptBinlog: the event is too short.
    """
    kind = event[4]
    try:
        if kind == EventType.MARIADB_GTID:
            return _parse_mariadb(event)
        gtid = _parse_tagged(event) if kind == EventType.GTID_TAGGED else _parse_mysql(event)
        if (gtid.committed_us or 0) > _LAST_MOMENT:
            raise ValueError("its commit time is out of range")
        return gtid  # noqa: TRY300 - errors in it are converted here
    except (IndexError, ValueError) as damage:
        raise CorruptBinlog(f"cannot read a GTID event: {damage}", hint="report this event to the project") from damage
    except Exception as damage:  # struct.error has no common base with the others
        raise CorruptBinlog("a GTID event is truncated", hint="report this event to the project") from damage


@lru_cache(maxsize=256)
def uuid_text(raw: bytes) -> str:
    return str(UUID(bytes=raw))


def _parse_mysql(event: bytes) -> Gtid:
    _flags, uuid, gno = _MYSQL.unpack_from(event, HEADER_SIZE)
    text = None if event[4] == EventType.ANONYMOUS_GTID else f"{uuid_text(uuid)}:{gno}"
    at = HEADER_SIZE + _MYSQL.size
    committed = None
    if len(event) >= at + _CLOCK_SIZE + _TIMESTAMP_SIZE and event[at] == _LOGICAL_CLOCK:
        at += _CLOCK_SIZE
        committed = int.from_bytes(event[at : at + _TIMESTAMP_SIZE], "little")
        if committed & _ORIGINAL_FOLLOWS:
            at += _TIMESTAMP_SIZE
            committed = int.from_bytes(event[at : at + _TIMESTAMP_SIZE], "little")
    return Gtid(text, committed or None)


def _parse_mariadb(event: bytes) -> Gtid:
    server_id = HEADER.unpack_from(event)[2]
    seq, domain, flags = _MARIADB.unpack_from(event, HEADER_SIZE)
    at = HEADER_SIZE + _MARIADB.size
    if flags & MariadbGtidFlag.GROUP_COMMIT_ID:
        at += 8
    xid = None
    if flags & (MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.COMPLETED_XA):
        format_id, gtrid, bqual = _XID.unpack_from(event, at)
        data = event[at + _XID.size : at + _XID.size + gtrid + bqual]
        if len(data) < gtrid + bqual:
            raise IndexError("the identifier of its XA transaction is truncated")
        xid = xid_text(data[:gtrid], data[gtrid:], format_id)
        at += _XID.size + gtrid + bqual
    implicit_begin = not flags & MariadbGtidFlag.STANDALONE
    prepared = xid if flags & MariadbGtidFlag.PREPARED_XA else None
    # An event without extra flags ends here, or has zeros.
    without_effect = at < len(event) and event[at] & _WITHOUT_EFFECT != 0
    return Gtid(f"{domain}-{server_id}-{seq}", None, implicit_begin, prepared, without_effect)


class _Archive:
    """A reader of mysql::serialization's binary archive."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def unsigned(self) -> int:
        first = self._data[self.at]
        if not first & 1:
            self.at += 1
            return first >> 1
        size = 1
        while size < 9 and first & (1 << (size - 1)):
            size += 1
        rest = int.from_bytes(self._data[self.at + 1 : self.at + size], "little")
        if len(self._data) < self.at + size:
            raise IndexError("a variable-length integer is truncated")
        self.at += size
        return rest if size == 9 else (first >> size) | (rest << (8 - size))

    def signed(self) -> int:
        raw = self.unsigned()
        return -(raw >> 1) - 1 if raw & 1 else raw >> 1

    def uuid(self) -> bytes:
        data, at, decoded = self._data, self.at, list[int]()
        for _ in range(16):
            first = data[at]
            if first & 1:  # a byte above 127 takes two
                decoded.append(first >> 2 | data[at + 1] << 6)
                at += 2
            else:
                decoded.append(first >> 1)
                at += 1
        self.at = at
        return bytes(decoded)

    def text(self) -> str:
        size = self.unsigned()
        if len(self._data) < self.at + size:
            raise IndexError("a text is truncated")
        self.at += size
        return self._data[self.at - size : self.at].decode("ascii")


class TaggedGtid(NamedTuple):
    """MySQL 9's GTID event of a tagged transaction; missing fields are 0 or empty.

    Attributes:
        sequence: number of the transaction in its file.
        length: bytes of the whole transaction, including this event.
    """

    uuid: bytes = bytes(16)
    gno: int = 0
    tag: str = ""
    sequence: int = 0
    immediate_us: int = 0
    original_us: int = 0
    length: int = 0

    @property
    def name(self) -> str:
        """`uuid:tag`, or `uuid` without a tag."""
        return f"{uuid_text(self.uuid)}:{self.tag}" if self.tag else uuid_text(self.uuid)


def read_tagged(event: bytes) -> TaggedGtid:
    """The fields of a tagged GTID event (header included).

    Raises:
        IndexError, ValueError: the event is truncated.
    """
    archive = _Archive(event, HEADER_SIZE)
    archive.unsigned()  # version of the serialization
    size = archive.unsigned()
    archive.unsigned()  # last field that must be understood
    fields: dict[str, Any] = {}
    end = min(len(event), HEADER_SIZE + size)
    while archive.at < end:
        number = archive.unsigned()
        if number >= len(_FIELDS):
            break
        name, read = _FIELDS[number]
        value = read(archive)
        if name:
            fields[name] = value
    return TaggedGtid(**fields)


_FIELDS: tuple[tuple[str, Callable[[_Archive], Any]], ...] = (
    ("", _Archive.unsigned),  # flags
    ("uuid", _Archive.uuid),
    ("gno", _Archive.signed),
    ("tag", _Archive.text),
    ("", _Archive.signed),  # last committed
    ("sequence", _Archive.signed),
    ("immediate_us", _Archive.unsigned),
    ("original_us", _Archive.unsigned),
    ("length", _Archive.unsigned),
)
"""By number, in `Gtid_event::define_fields`' order."""


def _parse_tagged(event: bytes) -> Gtid:
    tagged = read_tagged(event)
    return Gtid(f"{tagged.name}:{tagged.gno}", tagged.original_us or tagged.immediate_us or None)
