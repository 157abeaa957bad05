"""Rows of a binary result set to VARIANT: byte for byte the same as row images, as far as MySQL's protocol allows.

Format: MySQL client/server protocol, "Binary Protocol Resultset Row": one packet per row, whose null bitmap starts at
its third bit; numbers have a fixed size, everything else is length-encoded. Types that a JSON document's text does not
express are lost: its dates, times and opaque values are strings here, and decimals with few digits are doubles.

The reader's session has `character_set_results = NULL` (text arrives in its column's own character set) and
`time_zone = '+00:00'`; of ENUM and SET columns the number is selected, as text.
"""

import json
from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from operator import itemgetter
from struct import Struct
from typing import Any

from dmdelta.binlog.rows.column_codec import (
    PACKED,
    ColumnCodec,
    Convert,
    Packed,
    bit_of,
    bytes_codec,
    enum_of,
    geometry_of,
    packed_codec,
    set_of,
    unsigned_bigint,
    vector_of,
)
from dmdelta.binlog.rows.image import ImageDecoder, RowForm, TableCodec, make_codec
from dmdelta.binlog.values import temporal, variant
from dmdelta.binlog.values.column_types import WireType
from dmdelta.binlog.values.decimals import MAX_PRECISION, MOST_DIGITS, decimal_text, decimal_text_of
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import UnsupportedEvent
from dmdelta.model import variant_types
from dmdelta.model.schema import Column, TableSchema

PACKET_HEADER = 4
ROW_HEADER = b"\x00"
RESULT_ROW = RowForm(lead=PACKET_HEADER + len(ROW_HEADER), spare=2)
_WIRE = {
    "tinyint": WireType.TINY,
    "smallint": WireType.SHORT,
    "int": WireType.LONG,
    "bigint": WireType.LONGLONG,
    "float": WireType.FLOAT,
    "double": WireType.DOUBLE,
}
_MEDIUMINT = Packed("i", "i", variant_types.INT32)
_YEAR = Packed("h", "h", variant_types.INT16)
_DAY = Struct("<HBB").unpack_from
_CLOCK = Struct("<BBB").unpack_from
_MICROS = Struct("<I").unpack_from
_TIME = Struct("<BIBBB").unpack_from
_ZERO_DATE = bytes(4)
_EXACTLY = Context(prec=2 * MOST_DIGITS)


class RowReader:
    """Reads the rows of one table's result set, whose columns are those of `schema`, in order."""

    def __init__(self, schema: TableSchema) -> None:
        self._codec = result_codec(schema)
        self._decoder = ImageDecoder(self._codec, self._codec.all_columns, keyed=False, form=RESULT_ROW)

    def read(self, packets: bytes, end: int) -> tuple[list[bytes], bytes]:
        """The row packets (header included) up to `end` as VARIANT values, and the dictionary that they share.

        Raises:
            CorruptBinlog: they are not rows of the table.
            UnsupportedEvent: a value that cannot be converted without loss.
        """
        decoder, lead, size = self._decoder, RESULT_ROW.lead, self._decoder.bitmap_size
        runners = decoder.runners
        rows: list[bytes] = []
        self._codec.keys.trim()
        at = 0
        while at < end:
            bitmap = packets[at + lead : at + lead + size]
            run = runners.get(bitmap) or decoder.runner(bitmap)
            at = run(packets, at, end, rows, rows, [])
        return rows, self._codec.keys.metadata


def result_codec(schema: TableSchema) -> TableCodec:
    """The codec of a table's rows in binary result sets.

    Raises:
        UnsupportedEvent: a column type or character set has no codec.
    """
    return make_codec(schema, lambda column, keys: _codec(column, keys, str(schema)))


def _codec(column: Column, keys: KeyDictionary, table: str) -> ColumnCodec:
    number = _number(column)
    if number is not None:
        return number
    if column.type in ("enum", "set"):
        return ColumnCodec(0, 0, _from_digits(enum_of(column, table) if column.type == "enum" else set_of(column)))
    if column.type == "json":
        return ColumnCodec(0, 0, lambda raw: json_text_value(raw, keys), is_json=True)
    made: dict[str, Callable[[], Convert]] = {
        "decimal": lambda: decimal_text_of(column.precision, column.scale),
        "bit": lambda: bit_of(column.length),
        "date": lambda: _date,
        "datetime": lambda: partial(_datetime, column.precision),
        "timestamp": lambda: partial(_timestamp, column.precision),
        "time": lambda: partial(_time, column.precision),
        "geometry": lambda: geometry_of(keys),
        "vector": lambda: vector_of,
    }
    if column.type in made:
        return ColumnCodec(0, 0, made[column.type]())
    return bytes_codec(0, column, table)


def _number(column: Column) -> ColumnCodec | None:
    if column.type == "mediumint":
        return packed_codec(_MEDIUMINT)
    if column.type == "year":
        return packed_codec(_YEAR)
    if column.type == "bigint" and column.unsigned:
        return ColumnCodec(8, 0, unsigned_bigint)
    wire = _WIRE.get(column.type)
    return None if wire is None else packed_codec(PACKED[wire, column.unsigned])


def _from_digits(convert: Convert) -> Convert:
    return lambda raw: convert(int(raw).to_bytes(8, "little"))


def _date(raw: bytes) -> bytes:
    return temporal.date_value(*_DAY(raw or _ZERO_DATE))


def _packed_datetime(raw: bytes) -> tuple[int, int]:
    """MySQL's packed date and time, and microseconds: the server omits trailing zeros."""
    year, month, day = _DAY(raw or _ZERO_DATE)
    hour, minute, second = _CLOCK(raw, 4) if len(raw) > 4 else (0, 0, 0)
    micros = _MICROS(raw, 7)[0] if len(raw) > 7 else 0
    return ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second, micros


def _datetime(precision: int, raw: bytes) -> bytes:
    return temporal.datetime_value(*_packed_datetime(raw), precision)


def _timestamp(precision: int, raw: bytes) -> bytes:
    packed, micros = _packed_datetime(raw)
    value = temporal.datetime_value(packed, micros, precision)
    # The zero timestamp is text, as in row images.
    return bytes((variant_types.TIMESTAMP,)) + value[1:] if value[0] == variant_types.TIMESTAMP_NTZ else value


def _time(precision: int, raw: bytes) -> bytes:
    negative, days, hour, minute, second = _TIME(raw) if raw else (0, 0, 0, 0, 0)
    micros = _MICROS(raw, 8)[0] if len(raw) > 8 else 0
    packed = (days * 24 + hour) << 12 | minute << 6 | second
    return temporal.time_value(packed, micros, precision, negative=bool(negative))


def json_text_value(document: bytes, keys: KeyDictionary) -> bytes:
    """A JSON document in MySQL's text format; new keys are added to `keys`. An empty one is JSON null, as in the
    server.

    Raises:
        UnsupportedEvent: it is not JSON.
    """
    if not document:
        return variant_types.NULL
    try:
        return _json_value(json.loads(document, parse_float=_json_number), keys)
    except (ValueError, RecursionError) as damage:
        raise UnsupportedEvent(f"cannot read a JSON document: {damage}", hint="report this to the project") from damage


def _json_number(text: str) -> float | Decimal:
    """A number with a fraction or an exponent. MySQL writes the shortest digits of a double; all others are decimals.

    A decimal with such digits is a double here: both have the same value and text.
    """
    double, exact = float(text), Decimal(text)
    shortest = text.endswith(".0") or not text.endswith("0")
    return double if "e" in text.lower() or (shortest and Decimal(repr(double)) == exact) else exact


def _json_decimal(value: Decimal) -> bytes:
    """As the log's JSON: a decimal of up to 38 digits, MySQL's text above that."""
    exponent = value.as_tuple().exponent
    scale = -exponent if isinstance(exponent, int) else 0
    unscaled = int(value.scaleb(scale, _EXACTLY))
    digits = max(len(str(abs(unscaled))), scale)
    if digits > MAX_PRECISION:
        return variant.string_piece(decimal_text(unscaled, scale).encode())
    return variant.decimal_piece(unscaled, scale, digits)


def _json_value(value: Any, keys: KeyDictionary) -> bytes:
    if isinstance(value, str):
        return variant.string_piece(value.encode())
    if isinstance(value, bool):
        return variant_types.TRUE if value else variant_types.FALSE
    if isinstance(value, int):
        return _json_integer(value)
    if isinstance(value, float):
        return variant.double_piece(value)
    if isinstance(value, Decimal):
        return _json_decimal(value)
    if isinstance(value, list):
        return variant.array_piece([_json_value(element, keys) for element in value])
    if isinstance(value, dict):
        members = sorted(((name.encode(), member) for name, member in value.items()), key=itemgetter(0))
        return variant.object_piece([(keys.id_of(name), _json_value(member, keys)) for name, member in members])
    return variant_types.NULL


def _json_integer(value: int) -> bytes:
    if -(1 << 15) <= value < 1 << 15:
        return variant.int16_piece(value)
    if -(1 << 31) <= value < 1 << 31:
        return variant.int32_piece(value)
    if not -(1 << 63) <= value < 1 << 64:
        return _json_decimal(Decimal(value))
    return variant.int64_piece(value) if value < 1 << 63 else variant.uint64_piece(value)
