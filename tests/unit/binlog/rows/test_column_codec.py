"""The values of each column type, from the bytes of a row image."""

import struct
import zlib
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from dmdelta.binlog.rows.column_codec import ColumnCodec, column_codec
from dmdelta.binlog.values.column_types import WireColumn, WireType
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.schema import Column
from tests.support.jsonb_writer import write_jsonb
from tests.support.variant_reader import read_variant

W = WireType
KEYS = KeyDictionary((b"c",))


def codec_of(wire: WireColumn, **column: Any) -> ColumnCodec:
    return column_codec(wire, Column("c", column.pop("type", ""), **column), KEYS, "s.t")


def value_of(codec: ColumnCodec, raw: bytes) -> Any:
    return read_variant(codec.convert(raw), KEYS.metadata)


FIXED = [
    (WireColumn(W.TINY), {}, b"\x80", -128),
    (WireColumn(W.TINY), {"unsigned": True}, b"\xff", 255),
    (WireColumn(W.SHORT), {}, b"\x00\x80", -(2**15)),
    (WireColumn(W.SHORT), {"unsigned": True}, b"\xff\xff", 2**16 - 1),
    (WireColumn(W.INT24), {}, b"\x00\x00\x80", -(2**23)),
    (WireColumn(W.INT24), {}, b"\xff\xff\x7f", 2**23 - 1),
    (WireColumn(W.INT24), {"unsigned": True}, b"\xff\xff\xff", 2**24 - 1),
    (WireColumn(W.LONG), {}, b"\x00\x00\x00\x80", -(2**31)),
    (WireColumn(W.LONG), {"unsigned": True}, b"\xff" * 4, 2**32 - 1),
    (WireColumn(W.LONGLONG), {}, b"\x00" * 7 + b"\x80", -(2**63)),
    (WireColumn(W.LONGLONG), {"unsigned": True}, b"\xff" * 8, 2**64 - 1),
    (WireColumn(W.FLOAT, 4), {}, struct.pack("<f", -1.5), -1.5),
    (WireColumn(W.FLOAT, 4), {"unsigned": True}, struct.pack("<f", 1.5), 1.5),
    (WireColumn(W.DOUBLE, 8), {}, struct.pack("<d", -0.1), -0.1),
    (WireColumn(W.DOUBLE, 8), {"unsigned": True}, struct.pack("<d", 0.1), 0.1),
    (WireColumn(W.NEWDECIMAL, 0, 5, 2), {}, b"\x80\x0c\x22", Decimal("12.34")),
    (WireColumn(W.YEAR), {"unsigned": True}, b"\x00", 0),
    (WireColumn(W.YEAR), {"unsigned": True}, b"\x01", 1901),
    (WireColumn(W.YEAR), {}, b"\xff", 2155),
    (WireColumn(W.DATE), {}, (2026 << 9 | 11 << 5 | 21).to_bytes(3, "little"), date(2026, 11, 21)),
    (WireColumn(W.NEWDATE), {}, (1 << 9 | 1 << 5 | 1).to_bytes(3, "little"), date(1, 1, 1)),
    (WireColumn(W.TIMESTAMP), {}, struct.pack("<I", 60), datetime(1970, 1, 1, 0, 1, tzinfo=timezone.utc)),
    (WireColumn(W.TIMESTAMP2, 0, 0), {}, struct.pack(">I", 60), datetime(1970, 1, 1, 0, 1, tzinfo=timezone.utc)),
    (
        WireColumn(W.TIMESTAMP2, 0, 2),
        {},
        struct.pack(">IB", 60, 7),
        datetime(1970, 1, 1, 0, 1, 0, 70_000, tzinfo=timezone.utc),
    ),
    (WireColumn(W.TIME2, 0, 0), {}, (0x800000 | 1 << 12 | 2 << 6 | 3).to_bytes(3, "big"), "01:02:03"),
    (WireColumn(W.TIME2, 0, 4), {}, (0x800000 | 1 << 12 | 2 << 6 | 3).to_bytes(3, "big") + b"\0\7", "01:02:03.0007"),
    (WireColumn(W.TIME), {}, (10203).to_bytes(3, "little"), "01:02:03"),
    (WireColumn(W.DATETIME), {}, (20261121083015).to_bytes(8, "little"), datetime(2026, 11, 21, 8, 30, 15)),  # noqa: DTZ001
    (
        WireColumn(W.DATETIME2, 0, 0),
        {},
        (1 << 39 | (2026 * 13 + 11) << 22 | 21 << 17 | 8 << 12 | 30 << 6 | 15).to_bytes(5, "big"),
        datetime(2026, 11, 21, 8, 30, 15),  # noqa: DTZ001
    ),
    (WireColumn(W.BIT, 1), {}, b"\x01", 1),
    (WireColumn(W.BIT, 8), {}, b"\x80", 128),
    (WireColumn(W.BIT, 9), {}, b"\x01\x02", 258),
    (WireColumn(W.BIT, 63), {}, b"\x7f" + b"\xff" * 7, 2**63 - 1),
    (WireColumn(W.BIT, 64), {}, b"\xff" * 8, Decimal(2**64 - 1)),
    (WireColumn(W.ENUM, 1), {"members": ("a", "é")}, b"\x02", "é"),
    (WireColumn(W.ENUM, 1), {"members": ("a", "é")}, b"\x00", ""),
    (WireColumn(W.ENUM, 2), {"members": tuple(f"m{n}" for n in range(1, 301))}, b"\x2c\x01", "m300"),
    (WireColumn(W.ENUM, 2), {}, b"\x01\x02", 513),
    (WireColumn(W.SET, 1), {"members": ("a", "b", "é")}, b"\x05", "a,é"),
    (WireColumn(W.SET, 1), {"members": ("a", "b", "é")}, b"\x00", ""),
    (WireColumn(W.SET, 2), {"members": tuple("abcdefghi")}, b"\x80\x01", "h,i"),
    (WireColumn(W.SET, 1), {}, b"\x7f", 127),
    (WireColumn(W.SET, 2), {}, b"\x02\x01", 258),
    (WireColumn(W.SET, 8), {}, b"\x01" * 7 + b"\x7f", 0x7F01010101010101),
    (WireColumn(W.SET, 8), {}, b"\x02" * 7 + b"\x80", Decimal(0x8002020202020202)),
]


@pytest.mark.parametrize(("wire", "column", "raw", "value"), FIXED)
def test_a_value_of_a_fixed_size(wire: WireColumn, column: dict[str, Any], raw: bytes, value: Any) -> None:
    """The codec knows the size, and a value has its type's meaning; repeated values are the same."""
    codec = codec_of(wire, **column)
    assert (codec.size, codec.prefix) == (len(raw), 0)
    assert [value_of(codec, raw), value_of(codec, raw)] == [value, value]


TEXT = {"charset": "utf8mb4"}


@pytest.mark.parametrize(
    ("wire", "prefix"),
    [
        (WireColumn(W.VARCHAR, 0), 1),
        (WireColumn(W.VARCHAR, 255), 1),
        (WireColumn(W.VARCHAR, 256), 2),
        (WireColumn(W.VARCHAR, 65_535), 2),
        (WireColumn(W.STRING, 255), 1),
        (WireColumn(W.STRING, 256), 2),
        (WireColumn(W.STRING, 1020), 2),
        (WireColumn(W.VAR_STRING, 256), 2),
        *((WireColumn(W.BLOB, size), size) for size in (1, 2, 3, 4)),
        *((WireColumn(W.BLOB_COMPRESSED, size), size) for size in (1, 2, 3, 4)),
        (WireColumn(W.VARCHAR_COMPRESSED, 254), 1),
        (WireColumn(W.VARCHAR_COMPRESSED, 255), 2),
        (WireColumn(W.VARCHAR_COMPRESSED, 65_534), 2),
        *((WireColumn(kind, 4), 4) for kind in (W.JSON, W.GEOMETRY, W.VECTOR)),
    ],
)
def test_a_length_has_the_bytes_that_the_longest_value_needs(wire: WireColumn, prefix: int) -> None:
    """A compressed VARCHAR is one byte longer than its text."""
    codec = codec_of(wire, **TEXT)
    assert (codec.size, codec.prefix) == (0, prefix)


@pytest.mark.parametrize(
    ("wire", "column", "raw", "value"),
    [
        (WireColumn(W.VARCHAR, 80), TEXT, "é".encode(), "é"),
        (WireColumn(W.VARCHAR, 80), {"charset": "latin1"}, b"\xe9", "é"),
        (WireColumn(W.VARCHAR, 80), {"charset": "latin1"}, b"abc", "abc"),
        (WireColumn(W.BLOB, 2), {"charset": "utf16"}, b"\x00a\x00b", "ab"),
        (WireColumn(W.BLOB, 2), {"charset": "binary"}, b"a\xff", b"a\xff"),
        (WireColumn(W.BLOB, 2), {}, b"a\xff", b"a\xff"),
        (WireColumn(W.STRING, 4), {"type": "binary", "length": 4}, b"a", b"a\0\0\0"),
        (WireColumn(W.STRING, 4), {"type": "binary"}, b"", b"\0\0\0\0"),
        (WireColumn(W.VARCHAR, 4), {"type": "varbinary", "length": 4}, b"a", b"a"),
        (WireColumn(W.BLOB_COMPRESSED, 2), TEXT, b"", ""),
        (WireColumn(W.BLOB_COMPRESSED, 2), TEXT, b"\0" + "é".encode(), "é"),
        (WireColumn(W.BLOB_COMPRESSED, 2), TEXT, b"\x81\x64" + zlib.compress(b"x" * 100), "x" * 100),
        (WireColumn(W.VARCHAR_COMPRESSED, 80), {}, b"\0a\xff", b"a\xff"),
        (WireColumn(W.JSON, 4), {}, write_jsonb({"k": [1, "é"]}), {"k": [1, "é"]}),
        (WireColumn(W.GEOMETRY, 4), {}, struct.pack("<i", 4326) + b"wkb", {"srid": 4326, "wkb": b"wkb"}),
        (WireColumn(W.GEOMETRY, 4), {}, struct.pack("<i", -1) + b"\1", {"srid": -1, "wkb": b"\1"}),
        (WireColumn(W.VECTOR, 4), {}, struct.pack("<3f", 1.5, -2, 0), [1.5, -2.0, 0.0]),
        (WireColumn(W.VECTOR, 4), {}, b"", []),
    ],
)
def test_a_value_with_a_length(wire: WireColumn, column: dict[str, Any], raw: bytes, value: Any) -> None:
    """Text is decoded, padding that the log omits is restored, compressed values are decompressed."""
    assert value_of(codec_of(wire, **column), raw) == value


@pytest.mark.parametrize(
    ("wire", "column", "copies"),
    [
        (WireColumn(W.BLOB, 2), TEXT, (True, False)),
        (WireColumn(W.VARCHAR, 80), {"charset": "latin1"}, (True, False)),
        (WireColumn(W.BLOB, 2), {"charset": "utf16"}, (False, False)),
        (WireColumn(W.BLOB, 2), {}, (False, True)),
        (WireColumn(W.VARCHAR, 80), {"charset": "binary"}, (False, True)),
        (WireColumn(W.STRING, 4), {"type": "binary", "length": 4}, (False, False)),
        (WireColumn(W.BLOB_COMPRESSED, 2), {}, (False, False)),
    ],
)
def test_text_and_binaries_may_be_copied(wire: WireColumn, column: dict[str, Any], copies: tuple[bool, bool]) -> None:
    """ASCII in a character set that contains it, and binaries as a whole; not if their bytes change."""
    codec = codec_of(wire, **column)
    assert (codec.utf8 is not None, codec.blob) == copies


def test_an_enum_without_such_a_member_stops_the_task() -> None:
    """The known structure is not that of the table."""
    codec = codec_of(WireColumn(W.ENUM, 1), members=("a", "b"))
    with pytest.raises(UnsupportedEvent, match=r"s\.t\.c has no enum member 3"):
        codec.convert(b"\x03")


def test_invalid_text_stops_the_task_without_its_value() -> None:
    """The error has the column, and where the first invalid byte is."""
    with pytest.raises(UnsupportedEvent, match=r"s\.t\.c contains bytes that are not valid utf8mb4") as caught:
        codec_of(WireColumn(W.VARCHAR, 80), **TEXT).convert(b"secret\xff")
    assert caught.value.context == {"at_byte": 6}
    assert "secret" not in str(caught.value)
