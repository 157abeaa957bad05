"""VARIANT encoding: the values, objects and metadata dictionaries that Spark reads.

Format: Parquet VARIANT binary encoding, version 1 (apache/parquet-format, VariantEncoding.md). All numbers are little
endian. Every `*_piece` is one encoded value.
"""

from collections.abc import Sequence
from struct import Struct

from dmdelta.model.variant_types import (
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)

SHORT_STRING_MAX = 63
SIZE_LIMIT = 128 << 20
"""Maximum bytes of one VARIANT in Spark 4.1 and newer."""

_OBJECT, _ARRAY = 2, 3

_I16 = Struct("<Bh").pack
_I32 = Struct("<Bi").pack
_I64 = Struct("<Bq").pack
_F64 = Struct("<Bd").pack
_LENGTH = Struct("<BI").pack
_DECIMAL4 = Struct("<BBi").pack
_DECIMAL8 = Struct("<BBq").pack
STRING_HEADERS: tuple[bytes, ...] = tuple(
    bytes([size << 2 | 1]) if size <= SHORT_STRING_MAX else _LENGTH(STRING, size) for size in range(1024)
)
"""The headers of strings of 0 to 1023 bytes."""
STRING_SIZES: tuple[int, ...] = tuple(len(header) + size for size, header in enumerate(STRING_HEADERS))
"""Bytes of such a string including its header."""


def string_header(size: int) -> bytes:
    """The header of a string of `size` bytes."""
    return STRING_HEADERS[size] if size < len(STRING_HEADERS) else _LENGTH(STRING, size)


def string_piece(utf8: bytes) -> bytes:
    return string_header(len(utf8)) + utf8


def binary_piece(data: bytes) -> bytes:
    return _LENGTH(BINARY, len(data)) + data


def int16_piece(value: int) -> bytes:
    return _I16(INT16, value)


def int32_piece(value: int) -> bytes:
    return _I32(INT32, value)


def int64_piece(value: int) -> bytes:
    return _I64(INT64, value)


def uint64_piece(value: int) -> bytes:
    """An unsigned 64-bit number: decimal(20,0) fits into a decimal16."""
    return bytes((DECIMAL16, 0)) + value.to_bytes(16, "little")


def double_piece(value: float) -> bytes:
    return _F64(DOUBLE, value)


def date_piece(days: int) -> bytes:
    """A date as days since 1970-01-01."""
    return _I32(DATE, days)


def timestamp_piece(micros: int) -> bytes:
    """An instant as microseconds since 1970-01-01 UTC."""
    return _I64(TIMESTAMP, micros)


def timestamp_ntz_piece(micros: int) -> bytes:
    """A date and time without zone as microseconds since 1970-01-01."""
    return _I64(TIMESTAMP_NTZ, micros)


def decimal_piece(unscaled: int, scale: int, digits: int) -> bytes:
    """A decimal of at most `digits` digits (<= 38)."""
    if digits <= 9:
        return _DECIMAL4(DECIMAL4, scale, unscaled)
    if digits <= 18:
        return _DECIMAL8(DECIMAL8, scale, unscaled)
    return bytes((DECIMAL16, scale)) + unscaled.to_bytes(16, "little", signed=True)


def width_of(number: int) -> int:
    """Bytes for offsets or ids up to `number`: 1, 2 or 4 (3 would be allowed, but no struct packs it)."""
    return 1 if number < 0x100 else 2 if number < 0x10000 else 4


def object_header(count: int, id_width: int, offset_width: int) -> bytes:
    """The header byte and the number of fields of an object."""
    large = count > 0xFF
    head = (offset_width - 1) | (id_width - 1) << 2 | large << 4
    return bytes((head << 2 | _OBJECT,)) + count.to_bytes(4 if large else 1, "little")


def object_piece(fields: Sequence[tuple[int, bytes]]) -> bytes:
    """An object of (key id, value) in the lexicographic order of the keys."""
    ids = [key for key, _ in fields]
    values = [value for _, value in fields]
    total = sum(map(len, values))
    id_width, offset_width = width_of(max(ids, default=0)), width_of(total)
    head = object_header(len(ids), id_width, offset_width)
    return b"".join((head, pack_numbers(ids, id_width), _offsets(values, offset_width), *values))


def array_piece(values: Sequence[bytes]) -> bytes:
    offset_width = width_of(sum(map(len, values)))
    large = len(values) > 0xFF
    head = bytes((((offset_width - 1) | large << 2) << 2 | _ARRAY,)) + len(values).to_bytes(4 if large else 1, "little")
    return b"".join((head, _offsets(values, offset_width), *values))


def _offsets(values: Sequence[bytes], width: int) -> bytes:
    offsets, at = [0], 0
    for value in values:
        at += len(value)
        offsets.append(at)
    return pack_numbers(offsets, width)


def pack_numbers(numbers: Sequence[int], width: int) -> bytes:
    """Concatenated unsigned numbers of `width` bytes each."""
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def metadata_bytes(keys: Sequence[bytes]) -> bytes:
    """The dictionary of keys (UTF-8), whose index is their id. Not marked as sorted: ids follow the columns' order."""
    total = sum(map(len, keys))
    width = width_of(max(total, len(keys)))
    head = bytes((1 | (width - 1) << 6,)) + len(keys).to_bytes(width, "little")
    return head + _offsets(keys, width) + b"".join(keys)


class KeyDictionary:
    """The keys of a table's variants: the columns' names, followed by keys of JSON documents.

    It grows from row to row, so that rows with similar documents share one dictionary; `trim` starts over once it has
    grown beyond a limit. A variant remains readable with any later state of the dictionary up to the next trim.
    """

    LIMIT = 4096
    """Bytes of JSON keys above which `trim` starts over."""

    def __init__(self, names: Sequence[bytes]) -> None:
        self._fixed = tuple(dict.fromkeys(names))
        self._reset()

    def _reset(self) -> None:
        self.ids = {name: number for number, name in enumerate(self._fixed)}
        self._grown = 0
        self._count = len(self._fixed)
        self._metadata = metadata_bytes(self._fixed)

    def id_of(self, key: bytes) -> int:
        """The id of a key, assigned now if it is new.

        Raises:
            UnicodeDecodeError: it is not UTF-8, which would make the dictionary unreadable.
        """
        known = self.ids.get(key)
        if known is None:
            key.decode()
            known = self.ids[key] = len(self.ids)
            self._grown += len(key)
        return known

    @property
    def metadata(self) -> bytes:
        """The current dictionary."""
        if self._count != len(self.ids):
            self._metadata = metadata_bytes(tuple(self.ids))
            self._count = len(self.ids)
        return self._metadata

    def trim(self) -> None:
        """Discard the JSON keys if they exceed the limit. Only between rows."""
        if self._grown > self.LIMIT:
            self._reset()
