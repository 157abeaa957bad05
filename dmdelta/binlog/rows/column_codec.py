"""Converts one column's bytes to VARIANT values.

A value in a row image has a fixed size or a length prefix. `ColumnCodec.convert` is the general conversion to its
VARIANT value; `packed` and `utf8` allow the generated decoders to copy bytes instead. Both give the same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct

from dmdelta.binlog.events.compression import decompress_value
from dmdelta.binlog.values import temporal, variant
from dmdelta.binlog.values.charsets import UTF8, Decoder, decoder_of, is_ascii_superset
from dmdelta.binlog.values.column_types import WireColumn, WireType
from dmdelta.binlog.values.decimals import decimal_of, decimal_size
from dmdelta.binlog.values.jsonb import json_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import UnsupportedEvent
from dmdelta.model import variant_types
from dmdelta.model.schema import Column

Convert = Callable[[bytes], bytes]
GEOMETRY_KEYS = (b"srid", b"wkb")
_CACHED_SETS = 4096


@dataclass(frozen=True, slots=True)
class Packed:
    """A value whose VARIANT bytes are packed with a struct from what another struct unpacks, without conversion.

    Attributes:
        unpack: struct codes of the value in the row image (little endian).
        pack: struct codes of the value in VARIANT, after its type byte.
        tag: the type byte.
    """

    unpack: str
    pack: str
    tag: int


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """The codec of one column.

    Attributes:
        size: bytes of a fixed-size value, 0 for one with a length prefix.
        prefix: bytes of the length prefix; 0: it is length-encoded, as in result sets.
        convert: raw bytes to a VARIANT value.
        packed: for numbers.
        utf8: for text whose ASCII bytes can be copied: converts other bytes to UTF-8.
        blob: a plain binary, copied as a whole.
        is_json: SQL NULL is the field's absence, as opposed to JSON null; adds its own keys.
        compressed: a value can be many times as long as its raw bytes.
    """

    size: int
    prefix: int
    convert: Convert
    packed: Packed | None = None
    utf8: Convert | None = None
    blob: bool = False
    is_json: bool = False
    compressed: bool = False


PACKED: dict[tuple[WireType, bool], Packed] = {
    (WireType.TINY, False): Packed("b", "b", variant_types.INT8),
    (WireType.TINY, True): Packed("B", "h", variant_types.INT16),
    (WireType.SHORT, False): Packed("h", "h", variant_types.INT16),
    (WireType.SHORT, True): Packed("H", "i", variant_types.INT32),
    # Two parts: the high byte, packed as 16 bits, carries the sign.
    (WireType.INT24, False): Packed("Hb", "Hh", variant_types.INT32),
    (WireType.INT24, True): Packed("HB", "HH", variant_types.INT32),
    (WireType.LONG, False): Packed("i", "i", variant_types.INT32),
    (WireType.LONG, True): Packed("I", "q", variant_types.INT64),
    (WireType.LONGLONG, False): Packed("q", "q", variant_types.INT64),
    (WireType.FLOAT, False): Packed("4s", "4s", variant_types.FLOAT),
    (WireType.FLOAT, True): Packed("4s", "4s", variant_types.FLOAT),
    (WireType.DOUBLE, False): Packed("8s", "8s", variant_types.DOUBLE),
    (WireType.DOUBLE, True): Packed("8s", "8s", variant_types.DOUBLE),
}


def column_codec(wire: WireColumn, column: Column, keys: KeyDictionary, table: str) -> ColumnCodec:
    """The codec of a column; `table` is for messages.

    Raises:
        UnsupportedEvent: the type has no codec.
    """
    packed = PACKED.get((wire.type, column.unsigned))
    if packed is not None:
        return packed_codec(packed)
    if wire.type in _FIXED:
        size, convert = _FIXED[wire.type]
        return ColumnCodec(size, 0, convert)
    if wire.type in _TEMPORAL:
        size, make = _TEMPORAL[wire.type]
        return ColumnCodec(size + temporal.fraction_size(wire.precision), 0, make(wire.precision))
    if wire.type == WireType.NEWDECIMAL:
        return ColumnCodec(decimal_size(wire.precision, wire.scale), 0, decimal_of(wire.precision, wire.scale))
    if wire.type == WireType.BIT:
        return ColumnCodec((wire.length + 7) // 8, 0, bit_of(wire.length))
    if wire.type == WireType.ENUM:
        return ColumnCodec(wire.length, 0, enum_of(column, table))
    if wire.type == WireType.SET:
        return ColumnCodec(wire.length, 0, set_of(column))
    return _prefixed(wire, column, keys, table)


def packed_codec(packed: Packed) -> ColumnCodec:
    """The codec of a number."""
    unpack, pack = Struct("<" + packed.unpack), Struct("<B" + packed.pack)
    tag = packed.tag
    return ColumnCodec(unpack.size, 0, lambda raw: pack.pack(tag, *unpack.unpack(raw)), packed)


def _year(raw: bytes) -> bytes:
    return variant.int16_piece(1900 + raw[0] if raw[0] else 0)


def unsigned_bigint(raw: bytes) -> bytes:
    """A BIGINT UNSIGNED, little endian."""
    return bytes((variant_types.DECIMAL16, 0)) + raw + bytes(8)


def _bit(raw: bytes) -> bytes:
    return variant.int64_piece(int.from_bytes(raw, "big"))


def _bit64(raw: bytes) -> bytes:
    return variant.uint64_piece(int.from_bytes(raw, "big"))


_FIXED: dict[WireType, tuple[int, Convert]] = {
    WireType.LONGLONG: (8, unsigned_bigint),  # the signed variant is packed
    WireType.YEAR: (1, _year),
    WireType.DATE: (3, temporal.date_of),
    WireType.NEWDATE: (3, temporal.date_of),
    WireType.TIMESTAMP: (4, temporal.old_timestamp_of),
    WireType.DATETIME: (8, temporal.old_datetime_of),
    WireType.TIME: (3, temporal.old_time_of),
}
_TEMPORAL: dict[WireType, tuple[int, Callable[[int], Convert]]] = {
    WireType.TIMESTAMP2: (4, temporal.timestamp2_of),
    WireType.DATETIME2: (5, temporal.datetime2_of),
    WireType.TIME2: (3, temporal.time2_of),
}


def bit_of(bits: int) -> Convert:
    """The converter of a BIT(bits)."""
    return _bit if bits < 64 else _bit64


def enum_of(column: Column, table: str) -> Convert:
    """The converter of an ENUM's index, little endian; `table` is for messages."""
    if not column.members:
        return lambda raw: variant.int64_piece(int.from_bytes(raw, "little"))
    pieces = [variant.string_piece(name.encode()) for name in ("", *column.members)]

    def convert(raw: bytes) -> bytes:
        index = int.from_bytes(raw, "little")
        if index >= len(pieces):
            raise UnsupportedEvent(
                f"{table}.{column.name} has no enum member {index}", hint="the known structure is not that of the table"
            )
        return pieces[index]

    return convert


def set_of(column: Column) -> Convert:
    """The converter of a SET's bits, little endian."""
    members = column.members
    if not members:
        return lambda raw: _bit(raw[::-1]) if raw[-1] < 0x80 else _bit64(raw[::-1])
    cached: dict[bytes, bytes] = {}

    def convert(raw: bytes) -> bytes:
        piece = cached.get(raw)
        if piece is None:
            mask = int.from_bytes(raw, "little")
            text = ",".join(name for bit, name in enumerate(members) if mask >> bit & 1)
            piece = variant.string_piece(text.encode())
            if len(cached) < _CACHED_SETS:
                cached[raw] = piece
        return piece

    return convert


_COMPRESSED = {
    WireType.BLOB_COMPRESSED: (WireType.BLOB, 0),
    WireType.VARCHAR_COMPRESSED: (WireType.VARCHAR, 1),
}
"""The type without compression, and how many bytes longer a value can be."""


def _prefixed(wire: WireColumn, column: Column, keys: KeyDictionary, table: str) -> ColumnCodec:
    if wire.type == WireType.JSON:
        return ColumnCodec(0, wire.length, lambda raw: json_value(raw, keys), is_json=True)
    if wire.type == WireType.GEOMETRY:
        return ColumnCodec(0, wire.length, geometry_of(keys))
    if wire.type == WireType.VECTOR:
        return ColumnCodec(0, wire.length, vector_of)
    if wire.type in _COMPRESSED:
        plain_type, extra = _COMPRESSED[wire.type]
        plain = _prefixed(replace(wire, type=plain_type), column, keys, table)
        prefix = plain.prefix if wire.type == WireType.BLOB_COMPRESSED else 1 if wire.length + extra < 256 else 2
        convert = plain.convert
        return ColumnCodec(0, prefix, lambda raw: convert(decompress_value(raw)), compressed=True)
    is_blob = wire.type in (WireType.BLOB, WireType.TINY_BLOB, WireType.MEDIUM_BLOB, WireType.LONG_BLOB)
    prefix = wire.length if is_blob else 1 if wire.length < 256 else 2
    if column.type == "binary":
        size = column.length or wire.length
        return ColumnCodec(0, prefix, lambda raw: variant.binary_piece(raw.ljust(size, b"\0")))
    return bytes_codec(prefix, column, table)


def bytes_codec(prefix: int, column: Column, table: str) -> ColumnCodec:
    """The codec of a text or binary column with a length prefix of `prefix` bytes."""
    charset = column.charset
    if charset is None or charset == "binary":
        return ColumnCodec(0, prefix, variant.binary_piece, blob=True)
    to_utf8 = _to_utf8(charset, decoder_of(charset), f"{table}.{column.name}")
    ascii_as_is = is_ascii_superset(charset)

    def convert(raw: bytes) -> bytes:
        return variant.string_piece(raw if ascii_as_is and raw.isascii() else to_utf8(raw))

    return ColumnCodec(0, prefix, convert, utf8=to_utf8 if ascii_as_is else None)


def _to_utf8(charset: str, decode: Decoder, name: str) -> Convert:
    copies = charset in UTF8

    def convert(raw: bytes) -> bytes:
        try:
            text = decode(raw)
            return raw if copies else text.encode()
        except UnicodeError as damage:
            raise UnsupportedEvent(
                f"{name} contains bytes that are not valid {charset}",
                hint="fix the value, or declare the column as binary",
                at_byte=getattr(damage, "start", 0),
            ) from None

    return convert


def geometry_of(keys: KeyDictionary) -> Convert:
    """The converter of SRID and WKB, in MySQL's storage format."""
    srid_key, wkb_key = (keys.id_of(key) for key in GEOMETRY_KEYS)

    def convert(raw: bytes) -> bytes:
        srid = variant.int32_piece(int.from_bytes(raw[:4], "little", signed=True))
        return variant.object_piece(((srid_key, srid), (wkb_key, variant.binary_piece(raw[4:]))))

    return convert


_FLOAT_TAG = bytes((variant_types.FLOAT,))


def vector_of(raw: bytes) -> bytes:
    """The VARIANT array of a VECTOR's floats."""
    return variant.array_piece([_FLOAT_TAG + raw[at : at + 4] for at in range(0, len(raw), 4)])
