"""The column types of a table map: wire code and type metadata, and the corresponding `model.schema.Column` types.

Format: mysql/binlog/event/rows_event.h, "Table_map_event column types"; the text, blob and temporal variants share
codes and differ by metadata and character set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from dmdelta.binlog.values.decimals import MOST_DIGITS
from dmdelta.errors import UnsupportedEvent


class WireType(IntEnum):
    """Type codes in binlogs of MySQL and MariaDB."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


NUMERIC = frozenset(
    {
        WireType.TINY,
        WireType.SHORT,
        WireType.INT24,
        WireType.LONG,
        WireType.LONGLONG,
        WireType.NEWDECIMAL,
        WireType.FLOAT,
        WireType.DOUBLE,
        WireType.YEAR,
    }
)
CHARACTER = frozenset(
    {
        WireType.STRING,
        WireType.VAR_STRING,
        WireType.VARCHAR,
        WireType.VARCHAR_COMPRESSED,
        WireType.BLOB,
        WireType.BLOB_COMPRESSED,
        WireType.TINY_BLOB,
        WireType.MEDIUM_BLOB,
        WireType.LONG_BLOB,
    }
)
_META_SIZES = {
    WireType.FLOAT: 1,
    WireType.DOUBLE: 1,
    WireType.VARCHAR: 2,
    WireType.VARCHAR_COMPRESSED: 2,
    WireType.BIT: 2,
    WireType.NEWDECIMAL: 2,
    WireType.BLOB: 1,
    WireType.BLOB_COMPRESSED: 1,
    WireType.VAR_STRING: 2,
    WireType.STRING: 2,
    WireType.ENUM: 2,
    WireType.SET: 2,
    WireType.TIME2: 1,
    WireType.DATETIME2: 1,
    WireType.TIMESTAMP2: 1,
    WireType.JSON: 1,
    WireType.GEOMETRY: 1,
    WireType.VECTOR: 1,
}
_SIMPLE_NAMES = {
    WireType.TINY: "tinyint",
    WireType.SHORT: "smallint",
    WireType.INT24: "mediumint",
    WireType.LONG: "int",
    WireType.LONGLONG: "bigint",
    WireType.FLOAT: "float",
    WireType.DOUBLE: "double",
    WireType.NEWDECIMAL: "decimal",
    WireType.YEAR: "year",
    WireType.DATE: "date",
    WireType.NEWDATE: "date",
    WireType.TIME: "time",
    WireType.TIME2: "time",
    WireType.DATETIME: "datetime",
    WireType.DATETIME2: "datetime",
    WireType.TIMESTAMP: "timestamp",
    WireType.TIMESTAMP2: "timestamp",
    WireType.BIT: "bit",
    WireType.JSON: "json",
    WireType.GEOMETRY: "geometry",
    WireType.VECTOR: "vector",
    WireType.ENUM: "enum",
    WireType.SET: "set",
}
BLOB_NAMES = {
    1: ("tinyblob", "tinytext"),
    2: ("blob", "text"),
    3: ("mediumblob", "mediumtext"),
    4: ("longblob", "longtext"),
}
"""By length-prefix size: the binary and the text type."""


_LENGTHS: dict[WireType, Sequence[int]] = {
    WireType.ENUM: range(1, 3),
    WireType.SET: range(1, 9),
    WireType.BIT: range(1, 65),
    WireType.VARCHAR_COMPRESSED: range(0x10000),
    **dict.fromkeys((WireType.BLOB, WireType.BLOB_COMPRESSED), range(1, 5)),
    # These codes are not used in a log: there a BLOB's length distinguishes the types.
    **dict.fromkeys((WireType.TINY_BLOB, WireType.MEDIUM_BLOB, WireType.LONG_BLOB), ()),
    **dict.fromkeys((WireType.JSON, WireType.GEOMETRY, WireType.VECTOR), range(1, 5)),
}
"""The valid lengths of types whose layout depends on it."""
_MOST_FRACTION = 6
_STRINGS = frozenset({WireType.STRING, WireType.VAR_STRING, WireType.ENUM, WireType.SET})


@dataclass(frozen=True, slots=True)
class WireColumn:
    """A column as encoded in row images.

    Attributes:
        type: the code that determines the layout: enum and set are distinguished from the strings that encode them.
        length: bytes: the maximum of a char, varchar, binary or varbinary; of an enum or set; of the length prefix of a
            blob, json, geometry or vector; of a float; bits of a bit.
        precision, scale: of a decimal; precision is also the fractional digits of a temporal type.
    """

    type: WireType
    length: int = 0
    precision: int = 0
    scale: int = 0

    def type_name(self, *, binary: bool) -> str:
        """MySQL's name of the type; `binary`: the character set is binary."""
        simple = _SIMPLE_NAMES.get(self.type)
        if simple is not None:
            return simple
        if self.type == WireType.STRING:
            return "binary" if binary else "char"
        if self.type in (WireType.VARCHAR, WireType.VAR_STRING, WireType.VARCHAR_COMPRESSED):
            return "varbinary" if binary else "varchar"
        return BLOB_NAMES[self.length][0 if binary else 1]


def parse_columns(types: bytes, metadata: bytes) -> tuple[WireColumn, ...]:
    """The columns of a table map's type and metadata blocks.

    Raises:
        UnsupportedEvent: an unknown type code.
        IndexError, ValueError: the metadata is truncated or not valid for the type.
    """
    columns: list[WireColumn] = []
    at = 0
    for code in types:
        try:
            kind = WireType(code)
        except ValueError:
            raise UnsupportedEvent(f"column type {code} is unknown", hint="report this to the project") from None
        size = _META_SIZES.get(kind, 0)
        raw = metadata[at : at + size]
        if len(raw) < size:
            raise IndexError("the column metadata is truncated")
        at += size
        column = _column(kind, raw)
        _check(column)
        columns.append(column)
    return tuple(columns)


def _check(column: WireColumn) -> None:
    """Check the layout: invalid metadata would make the decoder read the wrong bytes."""
    if column.type == WireType.NEWDECIMAL:
        fits = column.scale <= column.precision and column.precision in range(1, MOST_DIGITS + 1)
    else:
        fits = column.length in _LENGTHS.get(column.type, (column.length,)) and column.precision <= _MOST_FRACTION
    if not fits:
        raise ValueError(f"a column of type {column.type.name} has invalid metadata")


def _column(kind: WireType, raw: bytes) -> WireColumn:
    if kind in _STRINGS:
        return _string(raw[0], raw[1])
    if kind == WireType.NEWDECIMAL:
        return WireColumn(kind, precision=raw[0], scale=raw[1])
    if kind == WireType.BIT:
        return WireColumn(kind, raw[0] + 8 * raw[1])
    length = int.from_bytes(raw, "little")
    if kind in (WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2):
        return WireColumn(kind, precision=length)
    if kind == WireType.VARCHAR_COMPRESSED:
        # It includes the byte that marks a value as compressed.
        return WireColumn(kind, length - 1)
    return WireColumn(kind, length)


def _string(first: int, second: int) -> WireColumn:
    """The two bytes hold the real type and the length, whose bits 8 and 9 are stored, inverted, in the type (bug
    37426).
    """
    real = WireType(first | 0x30)
    if real not in _STRINGS:
        raise ValueError(f"a string column has the type {real.name}")
    return WireColumn(real, second | (~first & 0x30) << 4)
