"""Converts MySQL's binary JSON to VARIANT.

Format: sql-common/json_binary.h. Objects and arrays contain offsets from their own first byte, 2 bytes wide in small
and 4 in large ones; small numbers and literals are stored in place of the offset.
"""

from base64 import encodebytes
from collections.abc import Callable
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Any

from dmdelta.binlog.values import temporal, variant
from dmdelta.binlog.values.column_types import WireType
from dmdelta.binlog.values.decimals import MAX_PRECISION, MOST_DIGITS, decimal_size, decimal_text, unscaled_of
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog
from dmdelta.model import variant_types

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = 0, 1, 2, 3
LITERAL, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE = 4, 5, 6, 7, 8, 9, 10, 11, 12, 15
_LITERALS = {0: variant_types.NULL, 1: variant_types.TRUE, 2: variant_types.FALSE}
_I16, _U16, _I32, _U32, _I64, _U64, _F64 = (Struct("<" + code).unpack_from for code in "hHiIqQd")
_INT64_MAX = (1 << 63) - 1
_MICROS = 6
_LENGTH_SIZE = 5
"""Bytes of the longest length."""
_GROWTH = 8
"""Maximum growth of a document; damaged documents with overlapping values could otherwise grow without bounds."""


def json_value(document: bytes, keys: KeyDictionary) -> bytes:
    """A document in a row image; new keys are added to `keys`. An empty one is JSON null, as in the server.

    Raises:
        CorruptBinlog: offsets out of range, or an unknown type.
    """
    if not document:
        return variant_types.NULL
    try:
        return value(document[0], 1, document, keys)
    except (StructError, IndexError, UnicodeDecodeError, RecursionError) as damage:
        raise unreadable(damage) from damage


def unreadable(damage: Exception) -> CorruptBinlog:
    """The error for an invalid document."""
    return CorruptBinlog(f"cannot read a JSON document: {damage}", hint="report this event to the project")


def value(kind: int, at: int, data: bytes, keys: KeyDictionary) -> bytes:
    """The VARIANT value of the JSON value with a type at an offset."""
    if kind == STRING:
        size, at = var_length(data, at)
        text = data[at : at + size]
        if len(text) < size:
            raise IndexError("a string is truncated")
        if not text.isascii():
            text.decode()
        return variant.string_piece(text)
    if kind <= LARGE_OBJECT:
        pairs = members(data, at, large=kind == LARGE_OBJECT)
        ids = [keys.id_of(name) for name, _ in pairs]
        return variant.object_piece(list(zip(ids, _values([entry for _, entry in pairs], data, keys), strict=True)))
    if kind <= LARGE_ARRAY:
        return variant.array_piece(_values(elements(data, at, large=kind == LARGE_ARRAY), data, keys))
    if kind == OPAQUE:
        size, begin = var_length(data, at + 1)
        content = data[begin : begin + size]
        if len(content) < size:
            raise IndexError("an opaque value is truncated")
        return _opaque(data[at], content)
    return _scalar(kind, data, at)


def _values(entries: list["Entry"], data: bytes, keys: KeyDictionary) -> list[bytes]:
    """The VARIANT values of a container."""
    left = _GROWTH * len(data)
    pieces: list[bytes] = []
    for kind, at in entries:
        piece = value(kind, at, data, keys)
        left -= len(piece)
        if left < 0:
            raise IndexError("values overlap")
        pieces.append(piece)
    return pieces


def _scalar(kind: int, data: bytes, at: int) -> bytes:
    if kind == LITERAL and data[at] in _LITERALS:
        return _LITERALS[data[at]]
    if kind not in _NUMBERS:
        raise IndexError(f"unknown JSON type {kind}")
    unpack, piece = _NUMBERS[kind]
    return piece(*unpack(data, at))


def _uint64(number: int) -> bytes:
    return variant.int64_piece(number) if number <= _INT64_MAX else variant.uint64_piece(number)


_NUMBERS: dict[int, tuple[Callable[[bytes, int], tuple[Any, ...]], Callable[..., bytes]]] = {
    INT16: (_I16, variant.int16_piece),
    UINT16: (_U16, variant.int32_piece),
    INT32: (_I32, variant.int32_piece),
    UINT32: (_U32, variant.int64_piece),
    INT64: (_I64, variant.int64_piece),
    UINT64: (_U64, _uint64),
    DOUBLE: (_F64, variant.double_piece),
}
"""How a number is read, and its VARIANT value."""


def var_length(data: bytes, at: int) -> tuple[int, int]:
    """A length with 7 bits per byte, lowest first: (length, the offset after it)."""
    value = 0
    for place in range(_LENGTH_SIZE):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise IndexError("a length is too long")


def inlined(kind: int, *, large: bool) -> bool:
    """Whether the value is stored in the value entry itself."""
    return LITERAL <= kind <= UINT16 or (large and kind in (INT32, UINT32))


Entry = tuple[int, int]
"""(type, offset) of a value."""


def _entry(data: bytes, base: int, place: int, *, large: bool) -> Entry:
    kind = data[place]
    if inlined(kind, large=large):
        return kind, place + 1
    (offset,) = (_U32 if large else _U16)(data, place + 1)
    return kind, base + offset


def members(data: bytes, at: int, *, large: bool) -> list[tuple[bytes, Entry]]:
    """The names and values of the object at `at`, in byte order of the names."""
    width = 4 if large else 2
    unpack = _U32 if large else _U16
    (count,) = unpack(data, at)
    key_entry = at + 2 * width
    value_entry = key_entry + count * (width + 2)
    pairs: list[tuple[bytes, Entry]] = []
    for number in range(count):
        place = key_entry + number * (width + 2)
        (offset,), (size,) = unpack(data, place), _U16(data, place + width)
        begin, end = at + offset, at + offset + size
        if end > len(data):
            raise IndexError("a name is truncated")
        name = data[begin:end]
        pairs.append((name, _entry(data, at, value_entry + number * (width + 1), large=large)))
    pairs.sort()
    if len(dict(pairs)) < count:
        raise IndexError("an object has a duplicate name")
    return pairs


def elements(data: bytes, at: int, *, large: bool) -> list[Entry]:
    """The values of the array at `at`."""
    width = 4 if large else 2
    (count,) = (_U32 if large else _U16)(data, at)
    first = at + 2 * width
    return [_entry(data, at, first + number * (width + 1), large=large) for number in range(count)]


def _opaque(kind: int, data: bytes) -> bytes:
    if kind == WireType.NEWDECIMAL:
        return _decimal(data)
    if kind in (WireType.DATE, WireType.DATETIME, WireType.TIMESTAMP, WireType.TIME):
        (packed,) = _I64(data)
        return _temporal(kind, packed)
    text = encodebytes(data).rstrip(b"\n")
    return variant.string_piece(b"base64:type%d:%b" % (kind, text))


def _decimal(data: bytes) -> bytes:
    precision, scale = data[0], data[1]
    if not scale <= precision <= MOST_DIGITS or len(data) != 2 + decimal_size(precision, scale):
        raise IndexError("the size of a decimal does not match its digits")
    unscaled = unscaled_of(precision, scale)(data[2:])
    digits = max(len(str(abs(unscaled))), scale)
    if digits > MAX_PRECISION:
        return variant.string_piece(decimal_text(unscaled, scale).encode())
    return variant.decimal_piece(unscaled, scale, digits)


def _temporal(kind: int, packed: int) -> bytes:
    value = abs(packed)
    whole, micros = value >> 24, value & 0xFFFFFF
    if kind == WireType.TIME:
        return temporal.time_value(whole, micros, _MICROS, negative=packed < 0)
    if kind == WireType.DATE:
        months = whole >> 22
        return temporal.date_value(months // 13, months % 13, whole >> 17 & 31)
    return temporal.datetime_value(whole, micros, _MICROS)
