"""Rows of binary result sets, as bytes."""

import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from dmdelta.binlog.resultset.column_reader import ColumnReader
from dmdelta.binlog.resultset.row_reader import RowReader, json_text_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.type_names import INTEGERS
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


UTC = timezone.utc
MOMENT = struct.pack("<HBBBBBI", 2026, 11, 21, 8, 30, 15, 120_000)
VALUES = [
    (Column("c", "tinyint"), b"\x80", -128),
    (Column("c", "tinyint", unsigned=True), b"\xff", 255),
    (Column("c", "smallint", unsigned=True), b"\xff\xff", 65_535),
    (Column("c", "mediumint"), struct.pack("<i", -8_388_608), -8_388_608),
    (Column("c", "mediumint", unsigned=True), struct.pack("<i", 16_777_215), 16_777_215),
    (Column("c", "int", unsigned=True), b"\xff" * 4, 2**32 - 1),
    (Column("c", "bigint"), struct.pack("<q", -5), -5),
    (Column("c", "year"), struct.pack("<h", 2155), 2155),
    (Column("c", "float"), struct.pack("<f", 1.5), 1.5),
    (Column("c", "double"), struct.pack("<d", -0.1), -0.1),
    (Column("c", "enum", members=("a", "b", "c")), encoded(b"3"), "c"),
    (Column("c", "enum", members=("a", "b", "c")), encoded(b"0"), ""),
    (Column("c", "enum", members=tuple(f"m{n}" for n in range(1, 301))), encoded(b"300"), "m300"),
    (Column("c", "set", members=("a", "b", "c")), encoded(b"5"), "a,c"),
    (Column("c", "set", members=("a", "b", "c")), encoded(b"3"), "a,b"),
    (Column("c", "set", members=("a", "b", "c")), encoded(b"0"), ""),
    (Column("c", "bit", length=9), encoded(b"\x01\x02"), 258),
    (Column("c", "bit", length=64), encoded(b"\xff" * 8), 2**64 - 1),
    (Column("c", "timestamp", precision=3), encoded(MOMENT), datetime(2026, 11, 21, 8, 30, 15, 120_000, tzinfo=UTC)),
    (Column("c", "timestamp", precision=3), encoded(MOMENT[:7]), datetime(2026, 11, 21, 8, 30, 15, tzinfo=UTC)),
    (Column("c", "timestamp", precision=3), encoded(b""), "0000-00-00 00:00:00.000"),
    (Column("c", "time", precision=0), encoded(struct.pack("<BIBBB", 0, 2, 3, 4, 5)), "51:04:05"),
    (Column("c", "json"), encoded(b'{"a": [1, null]}'), {"a": [1, None]}),
    (Column("c", "geometry"), encoded(struct.pack("<i", 4326) + b"wkb"), {"srid": 4326, "wkb": b"wkb"}),
    (Column("c", "vector"), encoded(struct.pack("<2f", 1.5, -2)), [1.5, -2.0]),
    (Column("c", "varbinary", length=9), encoded(b"a\xff"), b"a\xff"),
    (Column("c", "binary", length=4), encoded(b"a\0\0\0"), b"a\0\0\0"),
    (Column("c", "varchar", length=9, charset="utf8mb4"), encoded("é".encode()), "é"),
]
PLAIN = (*INTEGERS, "year", "float", "double", "varbinary", "binary", "varchar")


@pytest.mark.parametrize(("column", "raw", "value"), VALUES)
def test_a_value_of_each_type(column: Column, raw: bytes, value: Any) -> None:
    """As a row's VARIANT and as a column's value, which is plain for numbers, text and bytes."""
    schema, packets = TableSchema("s", "t", (column,)), packet([raw])
    (image,), metadata = RowReader(schema).read(packets, len(packets))
    assert read_variant(image, metadata) == {"c": value}
    reader = ColumnReader(schema)
    reader.read(packets, len(packets))
    ((found,),) = reader.columns
    assert reader.plain == (column.type in PLAIN,)
    if reader.plain == (True,):
        assert found == (value.encode() if isinstance(value, str) else value)
    else:
        assert read_variant(found, reader.metadata) == value


def test_rows_of_any_null_pattern_are_read() -> None:
    """More patterns than generated decoders exist for one table."""
    columns = tuple(Column(f"c{number}", "smallint") for number in range(8))
    rows = [[None if bits >> place & 1 else struct.pack("<h", bits) for place in range(8)] for bits in range(256)]
    packets = b"".join(map(packet, rows))
    images, metadata = RowReader(TableSchema("s", "t", columns)).read(packets, len(packets))
    assert [read_variant(image, metadata) for image in images] == [
        {f"c{place}": None if bits >> place & 1 else bits for place in range(8)} for bits in range(256)
    ]


@pytest.mark.parametrize(("column", "raw"), [(column, raw) for column, raw, _ in VALUES])
def test_rows_with_nulls_have_their_own_values(column: Column, raw: bytes) -> None:
    """A column of a row with a NULL elsewhere equals that of a row without, whatever the row before it had."""
    schema = TableSchema("s", "t", (Column("n", "int"), column))
    reader = ColumnReader(schema)
    rows = [[bytes(4), raw], [None, raw], [None, None], [bytes(4), None], [bytes(4), raw]]
    packets = b"".join(map(packet, rows))
    reader.read(packets, len(packets))
    numbers, found = reader.columns
    assert (numbers, found[2:4]) == ([0, None, None, 0, 0], [None, None])
    assert found[0] == found[1] == found[4]


def test_a_small_number_is_that_of_its_own_row() -> None:
    """One byte between NULLs is not mistaken for a length."""
    schema = TableSchema("s", "t", (Column("n", "int"), Column("c", "tinyint", unsigned=True), Column("m", "int")))
    reader = ColumnReader(schema)
    packets = packet([bytes(4), b"\x07", bytes(4)]) + packet([None, b"\x09", bytes(4)]) + packet([None, b"\xff", None])
    reader.read(packets, len(packets))
    assert reader.columns == ([0, None, None], [7, 9, 255], [0, 0, None])
