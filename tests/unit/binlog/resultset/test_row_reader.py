"""Rows of binary result sets, as bytes."""

import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dmdelta.binlog.resultset.column_reader import ColumnReader
from dmdelta.binlog.resultset.row_reader import RowReader, json_text_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.schema import Column, TableSchema
from tests.support.variant_reader import read_variant

COLUMNS = (
    Column("id", "int"),
    Column("big", "bigint", unsigned=True),
    Column("price", "decimal", precision=5, scale=2),
    Column("wide", "decimal", precision=65, scale=30),
    Column("at", "datetime", precision=3),
    Column("day", "date"),
    Column("span", "time", precision=6),
    Column("kind", "enum", members=("a", "b")),
    Column("text", "longtext", charset="latin1"),
)
SCHEMA = TableSchema("s", "t", COLUMNS, ("id",))
WIDE = "12345678901234567890123456789012345.000000000000000000000000000001"


def encoded(data: bytes) -> bytes:
    """Length-encoded, with its length."""
    size = len(data)
    if size < 0xFB:
        return bytes([size]) + data
    width, mark = next((w, m) for w, m in ((2, 0xFC), (3, 0xFD), (8, 0xFE)) if size < 1 << 8 * w)
    return bytes([mark]) + size.to_bytes(width, "little") + data


def packet(values: list[bytes | None]) -> bytes:
    """A row packet."""
    bits = sum(1 << place for place, value in enumerate(values, 2) if value is None)
    bitmap = bits.to_bytes((len(values) + 9) // 8, "little")
    payload = b"\0" + bitmap + b"".join(value for value in values if value is not None)
    return len(payload).to_bytes(3, "little") + b"\x07" + payload


def row(number: int, text: bytes) -> list[bytes | None]:
    return [
        struct.pack("<i", number),
        (2**64 - 1).to_bytes(8, "little"),
        encoded(b"-12.30"),
        encoded(WIDE.encode()),
        encoded(struct.pack("<HBBBBBI", 2026, 11, 21, 8, 30, 15, 120_000)),
        encoded(struct.pack("<HBB", 2026, 11, 21)),
        encoded(struct.pack("<BIBBBI", 1, 34, 22, 59, 59, 7)),
        encoded(b"2"),
        encoded(text),
    ]


def read(packets: bytes) -> list[Any]:
    values, metadata = RowReader(SCHEMA).read(packets, len(packets))
    return [read_variant(value, metadata) for value in values]


@pytest.mark.parametrize("size", [0, 1, 250, 251, 1023, 1024, 65_535, 65_536, 1 << 17])
def test_values_of_any_length_are_read(size: int) -> None:
    """Lengths of one, three and four bytes, in a run of packets of which only the last one's bytes matter."""
    packets = packet(row(1, b"x")) + packet(row(-2, b"\xe9" * size)) + packet([None] * len(COLUMNS))
    first, second, empty = read(packets)
    assert second == {
        "id": -2,
        "big": 2**64 - 1,
        "price": Decimal("-12.30"),
        "wide": WIDE,
        "at": datetime(2026, 11, 21, 8, 30, 15, 120_000),  # noqa: DTZ001
        "day": date(2026, 11, 21),
        "span": "-838:59:59.000007",
        "kind": "b",
        "text": "é" * size,
    }
    assert first["text"] == "x"
    assert empty == dict.fromkeys(empty)
    assert len(empty) == len(COLUMNS)


def test_omitted_parts_of_values_are_zero() -> None:
    """Zero dates and times have no bytes, midnights no time part: they equal those of a row image."""
    values = row(1, b"")
    values[4], values[5], values[6] = encoded(b""), encoded(b""), encoded(b"")
    (found,) = read(packet(values))
    assert (found["at"], found["day"], found["span"]) == ("0000-00-00 00:00:00.000", "0000-00-00", "00:00:00.000000")
    values[4] = encoded(struct.pack("<HBB", 2026, 11, 21))
    (found,) = read(packet(values))
    assert found["at"] == datetime(2026, 11, 21)  # noqa: DTZ001


def test_truncated_rows_are_refused() -> None:
    """Bytes that end inside a value are an error."""
    with pytest.raises((CorruptBinlog, struct.error, IndexError)):
        read(packet(row(1, b"x"))[:-20])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"", None),
        (b"null", None),
        (b"true", True),
        (b"-32769", -32769),
        (b"18446744073709551615", 2**64 - 1),
        (b"1e20", 1e20),
        (b"123456789012345680.0", 123456789012345680.0),
        (b"-0.1", -0.1),
        (b"1.10", Decimal("1.10")),
        (b"-99999999999999999999.0123456789", Decimal("-99999999999999999999.0123456789")),
        (b"99999999999999999999", Decimal(99999999999999999999)),
        (b"-9223372036854775809", Decimal(-9223372036854775809)),
        (b"0." + b"1" * 39, "0." + "1" * 39),
        (b"9" * 65, "9" * 65),
        ('{"b": [1, {"é": "ü"}], "a": 1.5}'.encode(), {"a": 1.5, "b": [1, {"é": "ü"}]}),
    ],
)
def test_json_text_is_read_as_values(text: bytes, value: Any) -> None:
    """Every kind of JSON value; an empty document is null. Numbers that no double prints are decimals."""
    keys = KeyDictionary(())
    assert read_variant(json_text_value(text, keys), keys.metadata) == value


@pytest.mark.parametrize(
    ("number", "size"),
    [
        *((number, 3) for number in (0, 2**15 - 1, -(2**15))),
        *((number, 5) for number in (2**15, -(2**15) - 1, 2**31 - 1, -(2**31))),
        *((number, 9) for number in (2**31, -(2**31) - 1, 2**63 - 1, -(2**63))),
        *((number, 18) for number in (2**63, 2**64 - 1)),
    ],
)
def test_an_integer_of_json_has_the_smallest_type_that_holds_it(number: int, size: int) -> None:
    """It has 16, 32 or 64 bits, or is a decimal: value and type equal those of a row image."""
    keys = KeyDictionary(())
    value = json_text_value(str(number).encode(), keys)
    assert (read_variant(value, keys.metadata), len(value)) == (number, size)


def test_invalid_json_is_refused() -> None:
    """A damaged document is an error instead of becoming a string."""
    with pytest.raises(UnsupportedEvent, match="JSON"):
        json_text_value(b'{"a": ', KeyDictionary(()))


def test_columns_equal_the_images() -> None:
    """Plain for types with one meaning, the image's own VARIANT bytes for others; NULL in either; empty after `clear`."""
    packets = packet(row(1, b"x")) + packet([None] * len(COLUMNS)) + packet(row(-2, b"\xe9" * 300))
    images, metadata = RowReader(SCHEMA).read(packets, len(packets))
    reader = ColumnReader(SCHEMA)
    reader.read(packets + b"more", len(packets))
    assert reader.plain == (True, *[False] * 7, True)
    assert reader.rows == 3
    for number, image in enumerate(images):
        expected = read_variant(image, metadata)
        for column, plain, values in zip(COLUMNS, reader.plain, reader.columns, strict=True):
            value = values[number]
            if value is None:
                assert expected[column.name] is None
            elif not plain:
                assert read_variant(value, reader.metadata) == expected[column.name]
            else:
                assert (value.decode() if isinstance(value, bytes) else value) == expected[column.name]
    reader.clear()
    assert reader.rows == 0


def test_rows_of_another_structure_are_refused() -> None:
    """Rows that do not end with their packets have another structure."""
    packets = packet(row(1, b"x"))
    with pytest.raises(CorruptBinlog):
        ColumnReader(SCHEMA).read(packets, len(packets) - 1)
