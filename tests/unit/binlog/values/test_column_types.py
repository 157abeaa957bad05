"""The columns of a table map: type codes with their metadata."""

import pytest

from dmdelta.binlog.values.column_types import WireColumn, WireType, parse_columns
from dmdelta.errors import UnsupportedEvent


def parsed(code: int, metadata: bytes) -> tuple[str, str, int, int, int]:
    """Names of the type with a text and with the binary character set, length, precision and scale."""
    (column,) = parse_columns(bytes((code,)), metadata)
    return (
        column.type_name(binary=False),
        column.type_name(binary=True),
        column.length,
        column.precision,
        column.scale,
    )


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (1, "tinyint"),
        (2, "smallint"),
        (3, "int"),
        (7, "timestamp"),
        (8, "bigint"),
        (9, "mediumint"),
        (10, "date"),
        (11, "time"),
        (12, "datetime"),
        (13, "year"),
        (14, "date"),
    ],
)
def test_types_without_metadata(code: int, name: str) -> None:
    """The code alone determines the layout; the metadata belongs to other columns."""
    assert parsed(code, b"\x07\x07") == (name, name, 0, 0, 0)


@pytest.mark.parametrize(
    ("code", "metadata", "text", "binary", "length"),
    [
        (4, b"\x04", "float", "float", 4),
        (5, b"\x08", "double", "double", 8),
        (15, b"\x00\x00", "varchar", "varbinary", 0),
        (15, b"\x34\x12", "varchar", "varbinary", 0x1234),
        (15, b"\xff\xff", "varchar", "varbinary", 0xFFFF),
        (16, b"\x01\x00", "bit", "bit", 1),
        (16, b"\x07\x02", "bit", "bit", 23),
        (16, b"\x00\x08", "bit", "bit", 64),
        (140, b"\x01", "tinytext", "tinyblob", 1),
        (140, b"\x04", "longtext", "longblob", 4),
        (141, b"\x01\x00", "varchar", "varbinary", 0),
        (141, b"\xff\xff", "varchar", "varbinary", 0xFFFE),
        (242, b"\x04", "vector", "vector", 4),
        (245, b"\x04", "json", "json", 4),
        (252, b"\x01", "tinytext", "tinyblob", 1),
        (252, b"\x02", "text", "blob", 2),
        (252, b"\x03", "mediumtext", "mediumblob", 3),
        (252, b"\x04", "longtext", "longblob", 4),
        (255, b"\x04", "geometry", "geometry", 4),
    ],
)
def test_types_with_a_length(code: int, metadata: bytes, text: str, binary: str, length: int) -> None:
    """Bytes of a value, of a number or of a length prefix; bits of a BIT."""
    assert parsed(code, metadata) == (text, binary, length, 0, 0)


@pytest.mark.parametrize(
    ("metadata", "text", "binary", "length"),
    [
        (b"\xfe\x00", "char", "binary", 0),
        (b"\xfe\xff", "char", "binary", 255),
        (b"\xee\x00", "char", "binary", 256),
        (b"\xde\x01", "char", "binary", 513),
        (b"\xce\xfc", "char", "binary", 1020),
        (b"\xfd\x0a", "varchar", "varbinary", 10),
        (b"\xcd\xff", "varchar", "varbinary", 1023),
        (b"\xf7\x01", "enum", "enum", 1),
        (b"\xf7\x02", "enum", "enum", 2),
        (b"\xf8\x01", "set", "set", 1),
        (b"\xf8\x08", "set", "set", 8),
    ],
)
def test_string_codes_hold_the_real_type(metadata: bytes, text: str, binary: str, length: int) -> None:
    """Lengths from 256 on occupy bits of the type's byte."""
    assert parsed(254, metadata) == (text, binary, length, 0, 0)


@pytest.mark.parametrize("code", [17, 18, 19])
@pytest.mark.parametrize("digits", range(7))
def test_temporal_types_have_fractional_digits(code: int, digits: int) -> None:
    name = {17: "timestamp", 18: "datetime", 19: "time"}[code]
    assert parsed(code, bytes((digits,))) == (name, name, 0, digits, 0)


@pytest.mark.parametrize(("precision", "scale"), [(1, 0), (1, 1), (10, 2), (65, 0), (65, 30), (65, 65)])
def test_a_decimal_has_precision_and_scale(precision: int, scale: int) -> None:
    assert parsed(246, bytes((precision, scale))) == ("decimal", "decimal", 0, precision, scale)


def test_each_column_has_its_own_metadata() -> None:
    """The metadata of all columns is one block."""
    found = parse_columns(bytes((3, 15, 10, 246, 19, 1, 254)), b"\x10\x00" + b"\x0a\x02" + b"\x03" + b"\xf7\x01")
    assert found == (
        WireColumn(WireType.LONG),
        WireColumn(WireType.VARCHAR, length=16),
        WireColumn(WireType.DATE),
        WireColumn(WireType.NEWDECIMAL, precision=10, scale=2),
        WireColumn(WireType.TIME2, precision=3),
        WireColumn(WireType.TINY),
        WireColumn(WireType.ENUM, length=1),
    )


@pytest.mark.parametrize("code", [0, 6, 20, 139, 142, 200, 241, 243, 244])
def test_an_unknown_code_is_refused(code: int) -> None:
    """The error contains the code."""
    with pytest.raises(UnsupportedEvent, match=f"column type {code} is unknown"):
        parse_columns(bytes((code,)), bytes(8))


@pytest.mark.parametrize(
    ("code", "metadata"),
    [
        *((16, metadata) for metadata in (b"\x00\x00", b"\x01\x08", b"\xff\xff")),
        *((141, metadata) for metadata in (b"\x00\x00",)),
        *((code, size) for code in (140, 242, 245, 252, 255) for size in (b"\x00", b"\x05")),
        *((246, metadata) for metadata in (b"\x00\x00", b"\x42\x00", b"\x02\x03")),
        *((code, b"\x07") for code in (17, 18, 19)),
        *((254, metadata) for metadata in (b"\xf7\x00", b"\xf7\x03", b"\xf8\x00", b"\xf8\x09", b"\xe7\x01")),
        *((code, b"") for code in (249, 250, 251)),
    ],
)
def test_invalid_metadata_is_refused(code: int, metadata: bytes) -> None:
    """Lengths beside the valid ones, and codes that have no layout in a log."""
    with pytest.raises(ValueError, match="invalid metadata"):
        parse_columns(bytes((code,)), metadata)


@pytest.mark.parametrize("real", [0xFC, 0xFF, 0xF6, 0xF9])
def test_a_string_of_another_type_is_refused(real: int) -> None:
    with pytest.raises(ValueError, match="a string column has the type"):
        parse_columns(b"\xfe", bytes((real, 1)))


@pytest.mark.parametrize(
    ("code", "size"),
    [
        *((code, 1) for code in (4, 5, 17, 18, 19, 140, 242, 245, 252, 255)),
        *((code, 2) for code in (15, 16, 141, 246, 247, 248, 253, 254)),
    ],
)
def test_truncated_metadata_is_refused(code: int, size: int) -> None:
    """Every byte of it is needed."""
    with pytest.raises(IndexError, match="truncated"):
        parse_columns(bytes((1, code)), bytes(size - 1))
