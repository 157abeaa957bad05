"""Input that no server writes, with a valid checksum: each results in a dmdelta error with the problem.

Found by `test_wounds.py`, `tests/fuzz` and code review.
"""

import io
import struct
import zlib

import pytest

from dmdelta.binlog.events.compression import decompress, decompress_value
from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.events.payload import inner_events
from dmdelta.binlog.events.xa import parse_xid
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.binlog.values.column_types import WireType
from dmdelta.errors import CorruptBinlog, DmdeltaError, UnsupportedEvent
from dmdelta.model.schema import TableSchema
from tests.support.changes import Log, event_bytes, names_field, packed, payload_body, rows_body, table_map_body
from tests.support.jsonb_writer import Opaque, write_jsonb

INT, JSON, DECIMAL = (WireType.LONG, b""), (WireType.JSON, b"\4"), (WireType.NEWDECIMAL, b"\x26\0")
NAMES = names_field(["id"])


def of_one_column(column: tuple[int, bytes], value: bytes, kind: int = EventType.WRITE_ROWS) -> Log:
    """A table of one column, and a row of it."""
    return Log().transaction([column], NAMES, (kind, rows_body(b"\0" + value, 1)))


def field(kind: int, value: bytes) -> bytes:
    """A field of a table map's optional metadata."""
    return bytes((kind,)) + packed(len(value)) + value


@pytest.mark.parametrize("size", range(len(table_map_body([INT, JSON], names_field(["id", "v"])))))
def test_truncated_table_map(size: int) -> None:
    """Truncated anywhere, also in the names, which are read first to check whether the table is replicated."""
    body = table_map_body([INT, JSON], names_field(["id", "v"]))[:size]
    log = Log().query("BEGIN").add(EventType.TABLE_MAP, body)
    with pytest.raises(DmdeltaError):
        log.add(EventType.WRITE_ROWS, rows_body(bytes(9), 2)).add(EventType.XID, bytes(8)).changes()


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        (WireType.NEWDECIMAL, b"\x05\x06"),
        (WireType.NEWDECIMAL, b"\x42\x00"),
        (WireType.NEWDECIMAL, b"\x00\x00"),
        (WireType.TIME2, b"\x07"),
        (WireType.DATETIME2, b"\xff"),
        (WireType.BLOB, b"\x00"),
        (WireType.JSON, b"\xfa"),
        (WireType.GEOMETRY, b"\x05"),
        (WireType.BIT, b"\x00\x09"),
        (WireType.STRING, b"\xf7\x00"),
        (WireType.STRING, b"\xf8\x09"),
        (WireType.STRING, b"\xf6\x04"),
        (WireType.STRING, b"\x31\x04"),
        (WireType.VARCHAR_COMPRESSED, b"\x00\x00"),
        (WireType.TINY_BLOB, b""),
    ],
)
def test_invalid_column_metadata(kind: int, metadata: bytes) -> None:
    """A column with invalid metadata would be read from the wrong bytes."""
    with pytest.raises(CorruptBinlog, match="cannot read a table map"):
        of_one_column((kind, metadata), bytes(40)).changes()


@pytest.mark.parametrize(
    "optional",
    [
        names_field(["a"]),
        names_field(["a", "b", "c"]),
        names_field(["a", "a"]),
        names_field(["a", "a", "b"]),
        names_field(["a", "b"]) + field(8, b"\2"),
        field(3, b"\x2d\x2d\x2d") + names_field(["a", "b"]),
        field(2, b"\x2d\0") + names_field(["a", "b"]),
    ],
)
def test_names_and_key_of_other_columns(optional: bytes) -> None:
    """Names, character sets and the key refer to the table's own columns."""
    with pytest.raises(CorruptBinlog, match="cannot read a table map"):
        Log().transaction([INT, INT], optional).changes()


def test_members_outside_their_character_set() -> None:
    """An enum's members are text in the column's character set."""
    enum = (WireType.STRING, b"\xf7\x01")
    members = field(10, b"\x2d") + field(6, b"\1\2\xff\xfe")
    with pytest.raises(CorruptBinlog, match=r"s\.t\.id has members that are not valid utf8mb4"):
        Log().transaction([enum], NAMES + members).changes()


@pytest.mark.parametrize(("kind", "bitmaps"), [(EventType.DELETE_ROWS, 1), (EventType.UPDATE_ROWS, 2)])
def test_images_without_columns(kind: int, bitmaps: int) -> None:
    """Images of zero bytes would never end."""
    body = rows_body(b"\0\1\2", 1, bitmaps=bitmaps, present=b"\0")
    with pytest.raises(CorruptBinlog, match="row images"):
        Log().transaction([INT], NAMES, (kind, body)).changes()


def test_rows_of_a_table_without_columns() -> None:
    """The same for a table without columns."""
    options = DecodeOptions(wanted=lambda *_: True, known_schemas={("s", "t"): [TableSchema("s", "t", ())]})
    with pytest.raises(CorruptBinlog, match="row images"):
        Log().transaction([], b"", (EventType.WRITE_ROWS, rows_body(b"\0", 0))).changes(options)


@pytest.mark.parametrize("digits", [38, 18, 9])
def test_decimal_with_invalid_digits(digits: int) -> None:
    """Nine digits are less than a billion; more would be another value, or one that VARIANT cannot hold."""
    size = {38: 17, 18: 8, 9: 4}[digits]
    with pytest.raises(CorruptBinlog, match="not digits"):
        of_one_column((WireType.NEWDECIMAL, bytes((digits, 0))), b"\xff" * size).changes()


def document(*entries: bytes, kind: int = 2) -> bytes:
    """A small array (2) or object (0) with the given entries and bytes."""
    return bytes((kind,)) + b"".join(entries)


DAMAGED = {
    "an array inside itself": document(struct.pack("<HH", 2, 10), b"\2\0\0\2\0\0"),
    "overlapping values": document(
        struct.pack("<HH", 200, 1000),
        b"".join(b"\x0c" + struct.pack("<H", 604) for _ in range(200)),
        b"\x7e",
        b"x" * 126,
    ),
    "a length without an end": b"\x0c" + b"\xff" * 50,
    "a truncated opaque value": b"\x0f\xfd\x20abc",
    "a decimal of too many digits": write_jsonb(Opaque(b"\xf6\xff\xff" + bytes(40))),
    "a truncated decimal": write_jsonb(Opaque(b"\xf6\x10\x02\x80")),
    "a decimal with invalid digits": write_jsonb(Opaque(b"\xf6\x09\x00\xff\xff\xff\xff")),
    "a name that is not UTF-8": write_jsonb({"ab": 1}).replace(b"ab", b"\xff\xfe"),
    "a truncated name": document(struct.pack("<HH", 1, 12), b"\x0b\0\x05\0", b"\4\0\0", b"a", kind=0),
    "a duplicate name": write_jsonb({"aa": 1, "ab": 2}).replace(b"ab", b"aa"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_json_document(what: str) -> None:
    """It would take unbounded time and memory, or result in VARIANT that cannot be read."""
    value = DAMAGED[what]
    with pytest.raises(CorruptBinlog):
        of_one_column(JSON, struct.pack("<I", len(value)) + value).changes()


def diff(path: bytes, value: bytes, operation: int = 0) -> bytes:
    """A change of a JSON document."""
    return bytes((operation,)) + packed(len(path)) + path + packed(len(value)) + value


@pytest.mark.parametrize(
    "changed",
    [
        diff(b"$[7]", write_jsonb(1)),
        diff(b"$.a[1]", write_jsonb(1)),
        diff(b"$.\xff", write_jsonb(1)),
        diff(b'$."\\x"', write_jsonb(1)),
        diff(b'$."\\ud800"', write_jsonb(1)),
        diff(b"$[" + b"9" * 5000 + b"]", write_jsonb(1)),
        diff(b"$.a", DAMAGED["an array inside itself"]),
        diff(b"$.a", DAMAGED["overlapping values"]),
        diff(b"$.a", DAMAGED["a name that is not UTF-8"]),
    ],
)
def test_json_diff(changed: bytes) -> None:
    """An invalid diff, or one that does not fit its document."""
    before = write_jsonb({"a": 5})
    images = b"\0" + struct.pack("<I", len(before)) + before + b"\1\1\0" + struct.pack("<I", len(changed)) + changed
    body = rows_body(images, 1, bitmaps=2)
    with pytest.raises(CorruptBinlog):
        Log().transaction([JSON], NAMES, (EventType.PARTIAL_UPDATE_ROWS, body)).changes()


@pytest.mark.parametrize("inflate", [decompress, decompress_value])
@pytest.mark.parametrize("header", [b"\x87" + b"\xff" * 7, b"\x84\xff\xff\xff\xff", b"\x81\x05"])
def test_mariadb_s_compression_with_another_length(inflate, header: bytes) -> None:
    """No memory is allocated for a damaged length, and no more is decompressed than stated."""
    with pytest.raises(CorruptBinlog, match="compressed"):
        inflate(header + zlib.compress(bytes(10 << 20)))


def test_compressed_transaction_of_another_size() -> None:
    """A truncated stream would silently lose its last events."""
    event = event_bytes(EventType.XID, bytes(8), checksum=False)
    for compression in (0, 255):
        damaged = payload_body(event, compression=compression, told=2 * len(event))
        with pytest.raises(CorruptBinlog, match=f"has {len(event)} bytes, not {2 * len(event)}"):
            list(inner_events(io.BytesIO(damaged)))


def test_event_of_gigabytes_in_a_compressed_transaction() -> None:
    """Its size is not trusted before its bytes are read."""
    huge = struct.pack("<IBIIIH", 0, EventType.XID, 1, 0xFFFFFFF0, 0, 0)
    with pytest.raises(CorruptBinlog, match="ends inside an event"):
        list(inner_events(io.BytesIO(payload_body(huge))))


def test_empty_field_of_a_compressed_transaction() -> None:
    """A field without its number."""
    with pytest.raises(CorruptBinlog):
        list(inner_events(io.BytesIO(b"\2\0\0")))


def test_field_of_a_compressed_transaction_with_an_impossible_size() -> None:
    """More bytes than any object can have."""
    with pytest.raises(CorruptBinlog, match="is truncated"):
        list(inner_events(io.BytesIO(b"\x02\xfe" + b"\xff" * 8 + b"rest")))


@pytest.mark.parametrize("text", ["X'abc'", "X'ab',X'c'", "X'ab','c',12345678901234567890123", "X'ab',7"])
def test_invalid_xa_identifier(text: str) -> None:
    """Half a byte, or a number that is too long: nothing is guessed."""
    assert parse_xid(text) is None
    with pytest.raises(UnsupportedEvent, match="without an identifier"):
        Log().query(f"XA START {text}").changes()


def test_truncated_xa_prepare() -> None:
    """An identifier is complete."""
    with pytest.raises(CorruptBinlog, match="XA_PREPARE"):
        Log().add(EventType.XA_PREPARE, struct.pack("<BIII", 0, 1, 3, 3) + b"abcde").changes()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        # MariaDB: a prepared XA transaction, whose identifier has fewer bytes than stated.
        (EventType.MARIADB_GTID, struct.pack("<QIB", 1, 0, 64) + struct.pack("<IBB", 1, 3, 3) + b"abcde"),
        # MySQL 9: a tag of 40 bytes, only one of which is present.
        (EventType.GTID_TAGGED, bytes((0, 200, 0, 6, 80)) + b"a"),
        # MySQL 9: committed in a year that no timestamp can hold.
        (EventType.GTID_TAGGED, bytes((0, 200, 0, 12)) + b"\xff" * 9),
    ],
)
def test_gtid_event(kind: int, body: bytes) -> None:
    """Truncated, or with an invalid time."""
    with pytest.raises(CorruptBinlog, match="GTID event"):
        Log().add(kind, body).changes()
