"""Decoded segments as plain changes, read by the tests' own VARIANT reader, and handmade binlog bytes."""

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import zstandard

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows.batch import ChangeBatch
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.model.change import Op
from dmdelta.model.segment import MAGIC, Segment
from tests.support.replay import Change
from tests.support.variant_reader import read_variant

EVERYTHING = DecodeOptions(wanted=lambda _schema, _table: True)


def changes_of(batch: ChangeBatch) -> Iterator[Change]:
    """The rows of a batch."""
    at, moved = 0, set(batch.moved)
    for count, seq, first, index in batch.runs:
        gtid, _, schema, table, op, xid, image, ddl, _, metadata = batch.shared[index]
        for number in range(count):
            images = [read_variant(value, metadata) if value else None for value in (batch.before[at], batch.after[at])]
            yield Change(op, schema, table, *images, image, xid, seq, first + number, gtid, ddl, at in moved)
            at += 1
    assert at == len(batch.before) == len(batch.after)


def decode_bytes(data: bytes, segment: Segment, options: DecodeOptions = EVERYTHING) -> list[Change]:
    """Every change of a segment's bytes."""
    return [change for batch in decode_segment(io.BytesIO(data), segment, options) for change in changes_of(batch)]


def rows_of(changes: Sequence[Change]) -> list[Change]:
    """The changes without `schema` rows."""
    return [change for change in changes if change.op is not Op.SCHEMA]


class Log:
    """A handmade binlog file, event by event."""

    def __init__(self, version: str = "8.0.31", *, checksum: bool = True) -> None:
        self._checksum = checksum
        self.data = MAGIC
        body = struct.pack("<H50sIB", 4, version.encode(), 0, 19) + bytes(41) + bytes((int(checksum),))
        head = struct.pack("<IBIIIH", 1, EventType.FORMAT_DESCRIPTION, 1, 19 + len(body) + 4, 0, 0)
        self.data += head + body + struct.pack("<I", zlib.crc32(head + body))

    def add(self, kind: int, body: bytes = b"", *, flags: int = 0, server_id: int = 1) -> "Log":
        self.data += event_bytes(kind, body, flags=flags, server_id=server_id, checksum=self._checksum)
        return self

    def query(self, sql: str, schema: str = "s", kind: int = EventType.QUERY) -> "Log":
        return self.add(kind, query_body(sql.encode(), schema))

    def alter_phase(self, extra: bytes, sql: str) -> "Log":
        """One of the two phases of a MariaDB ALTER: a GTID event with these extra flags, and the statement."""
        return self.add(EventType.MARIADB_GTID, struct.pack("<QIB", 9, 0, 0x29) + extra).query(sql)

    def transaction(
        self, columns: Sequence[tuple[int, bytes]], optional: bytes, *events: tuple[int, bytes], **table: Any
    ) -> "Log":
        """BEGIN, a table map (`table`: its further arguments), the events, a commit."""
        self.query("BEGIN").add(EventType.TABLE_MAP, table_map_body(columns, optional, **table))
        for kind, body in events:
            self.add(kind, body)
        return self.add(EventType.XID, bytes(8))

    def segment(self) -> Segment:
        return Segment("made.binlog", "source", 1, "binlog.000007", 4, len(self.data))

    def changes(self, options: DecodeOptions = EVERYTHING) -> list[Change]:
        return decode_bytes(self.data, self.segment(), options)


def event_bytes(kind: int, body: bytes, *, flags: int = 0, server_id: int = 1, checksum: bool = True) -> bytes:
    """One whole event."""
    size = 19 + len(body) + 4 * checksum
    event = struct.pack("<IBIIIH", 100, kind, server_id, size, 0, flags) + body
    return event + struct.pack("<I", zlib.crc32(event)) * checksum


def query_body(sql: bytes, schema: str) -> bytes:
    return struct.pack("<IIBHH", 1, 0, len(schema), 0, 0) + schema.encode() + b"\0" + sql


def packed(number: int) -> bytes:
    """A length-encoded integer."""
    if number < 0xFB:
        return bytes((number,))
    return b"\xfc" + struct.pack("<H", number) if number < 0x10000 else b"\xfd" + number.to_bytes(3, "little")


def payload_body(events: bytes, *, compression: int = 0, told: int | None = None) -> bytes:
    """A compressed transaction that states `told` bytes; `compression` 0 is zstd, others leave the data unchanged."""
    data = zstandard.ZstdCompressor().compress(events) if compression == 0 else events
    values = packed(len(data)), packed(compression), packed(len(events) if told is None else told)
    fields = b"".join(bytes((kind, len(value))) + value for kind, value in enumerate(values, 1))
    return fields + b"\x00" + data


def table_map_body(
    columns: Sequence[tuple[int, bytes]],
    optional: bytes,
    table_id: int = 7,
    name: tuple[str, str] = ("s", "t"),
    nulls: bytes | None = None,
) -> bytes:
    """A table map of (type code, type metadata); every column is nullable unless the bitmap `nulls` says otherwise."""
    schema, table = (text.encode() for text in name)
    names = bytes((len(schema),)) + schema + b"\0" + bytes((len(table),)) + table + b"\0"
    types = packed(len(columns)) + bytes(code for code, _ in columns)
    metadata = b"".join(raw for _, raw in columns)
    nulls = b"\xff" * ((len(columns) + 7) // 8) if nulls is None else nulls
    return (
        table_id.to_bytes(6, "little") + b"\1\0" + names + types + packed(len(metadata)) + metadata + nulls + optional
    )


def names_field(names: Sequence[str]) -> bytes:
    """The optional metadata of column names, all numbers signed and text utf8mb4."""
    value = b"".join(packed(len(name.encode())) + name.encode() for name in names)
    charset = b"\x02\x01\x2d"
    return charset + b"\x04" + packed(len(value)) + value


def rows_body(
    images: bytes,
    columns: int,
    bitmaps: int = 1,
    table_id: int = 7,
    extra: bytes | None = b"",
    present: bytes | None = None,
) -> bytes:
    """A rows event's body, with all columns unless the bitmap `present` says otherwise; `extra` None makes version 1."""
    head = table_id.to_bytes(6, "little") + b"\1\0"
    if extra is not None:
        head += struct.pack("<H", 2 + len(extra)) + extra
    bitmap = b"\xff" * ((columns + 7) // 8) if present is None else present
    return head + packed(columns) + bitmap * bitmaps + images
