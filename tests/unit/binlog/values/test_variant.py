"""VARIANT encoding compared with the tests' own reader of the format, and binary JSON based on it."""

import struct
from base64 import b64decode
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from dmdelta.binlog.rows.partial_update import parse_path
from dmdelta.binlog.values import variant
from dmdelta.binlog.values.decimals import decimal_of, decimal_size, decimal_text
from dmdelta.binlog.values.jsonb import json_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog
from tests.support.jsonb_writer import Opaque, write_jsonb
from tests.support.variant_reader import read_variant

NO_KEYS = variant.metadata_bytes(())
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | TEXT
    | st.text("x", min_size=60, max_size=300)
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(TEXT, inner, max_size=8),
    max_leaves=30,
)


def read(value: bytes) -> Any:
    return read_variant(value, NO_KEYS)


@given(st.binary(max_size=400))
def test_binaries_and_strings_read_back(data: bytes) -> None:
    """Any bytes, and the short and long form of strings."""
    assert read(variant.binary_piece(data)) == data
    assert read(variant.string_piece(data.hex().encode())) == data.hex()


def _exact(unscaled: int, scale: int) -> Decimal:
    """Negates without the rounding of Decimal's arithmetic."""
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


@pytest.mark.parametrize("size", [0, 63, 64, 255, 256, 1023, 1024, 70_000])
def test_strings_of_every_length_form(size: int) -> None:
    """From 64 bytes on the header is longer."""
    assert read(variant.string_piece(b"x" * size)) == "x" * size


@given(st.integers(0, 2**64 - 1))
def test_unsigned_bigints_are_decimals(number: int) -> None:
    """2^64 - 1 keeps its value."""
    assert read(variant.uint64_piece(number)) == number


@given(
    shape=st.integers(1, 38).flatmap(
        lambda p: st.tuples(st.just(p), st.integers(0, min(p, 30)), st.integers(0, 10**p - 1))
    ),
    negative=st.booleans(),
)
def test_decimals_of_every_size(*, shape: tuple[int, int, int], negative: bool) -> None:
    """Precision decides between four, eight and sixteen bytes."""
    precision, scale, digits = shape
    unscaled = -digits if negative else digits
    assert read(variant.decimal_piece(unscaled, scale, precision)) == _exact(unscaled, scale)


def _to_binary(unscaled: int, precision: int, scale: int) -> bytes:
    """MySQL's decimal2bin, digit group by digit group."""
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    digits = f"{abs(unscaled):0{precision}d}"
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    lead = len(whole) % 9
    groups = [whole[:lead]] + [whole[at : at + 9] for at in range(lead, len(whole), 9)]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    raw = bytearray(b"".join(int(group).to_bytes(sizes[len(group)], "big") for group in groups if group))
    if unscaled < 0:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    raw[0] ^= 0x80
    return bytes(raw)


@given(
    shape=st.integers(1, 65).flatmap(
        lambda p: st.tuples(st.just(p), st.integers(0, min(p, 30)), st.integers(0, 10**p - 1))
    ),
    negative=st.booleans(),
)
def test_decimal_columns_of_every_shape(*, shape: tuple[int, int, int], negative: bool) -> None:
    """A decimal up to 38 digits, above that MySQL's text."""
    precision, scale, digits = shape
    unscaled = -digits if negative else digits
    raw = _to_binary(unscaled, precision, scale)
    assert len(raw) == decimal_size(precision, scale)
    found = read(decimal_of(precision, scale)(raw))
    assert found == (_exact(unscaled, scale) if precision <= 38 else decimal_text(unscaled, scale))
    assert isinstance(found, Decimal if precision <= 38 else str)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 255, 256, 300])
@pytest.mark.parametrize("size", [1, 300, 70_000])
def test_objects_of_every_width(count: int, size: int) -> None:
    """Ids, offsets and counts grow with the object; PySpark's reader gives the same result."""
    names = sorted(f"k{number}".encode() for number in range(count))
    keys = KeyDictionary(names)
    text = b"x" * (size // max(count, 1))
    value = variant.object_piece([(keys.id_of(name), variant.string_piece(text)) for name in names])
    expected = {name.decode(): text.decode() for name in names}
    assert read_variant(value, keys.metadata) == expected
    assert VariantVal(value, keys.metadata).toPython() == expected


@given(document=DOCUMENTS, large=st.booleans())
def test_binary_json_reads_back(*, document: Any, large: bool) -> None:
    """Every JSON document, in small and large containers."""
    keys = KeyDictionary((b"id", b"doc"))
    value = json_value(write_jsonb(document, large=large), keys)
    assert read_variant(value, keys.metadata) == document


def _packed_time(months: int, day: int, clock: int, micros: int) -> bytes:
    return struct.pack("<q", ((months << 5 | day) << 17 | clock) << 24 | micros)


@pytest.mark.parametrize(
    ("opaque", "expected"),
    [
        (b"\x0a" + _packed_time(2024 * 13 + 2, 29, 0, 0), date(2024, 2, 29)),
        (b"\x0a" + _packed_time(0, 0, 0, 0), "0000-00-00"),
        (b"\x0c" + _packed_time(2024 * 13 + 1, 2, 3 << 12 | 4 << 6 | 5, 6), datetime(2024, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001
        (b"\x07" + _packed_time(1970 * 13 + 1, 1, 0, 0), datetime(1970, 1, 1)),  # noqa: DTZ001
        (b"\x0b" + struct.pack("<q", -(((100 << 12) | (2 << 6) | 3) << 24 | 500_000)), "-100:02:03.500000"),
        (b"\xf6\x04\x02\x8c\x22", Decimal("12.34")),
        (b"\xfc\x00\xff", "base64:type252:AP8="),
    ],
)
def test_opaque_json_values(opaque: bytes, expected: Any) -> None:
    """Dates, times and decimals keep their type; anything else has MySQL's text."""
    assert read(json_value(write_jsonb(Opaque(opaque)), KeyDictionary(()))) == expected


def test_long_opaque_values_have_line_breaks() -> None:
    """MySQL's base64 has line breaks, and so does its text of such a value."""
    text = read(json_value(write_jsonb(Opaque(b"\xfc" + bytes(200))), KeyDictionary(())))
    assert text.startswith("base64:type252:")
    assert "\n" in text
    assert b64decode(text.split(":")[2]) == bytes(200)


def test_an_empty_document_is_json_null() -> None:
    """As in the server."""
    assert read(json_value(b"", KeyDictionary(()))) is None


@pytest.mark.parametrize("document", [b"\x0d\x00", b"\x00\x05\x00", b"\x02\x01\x00\xff\xff\x0c\xff\xff", b"\x0c\x80"])
def test_a_broken_document_is_damage(document: bytes) -> None:
    """Unknown types and offsets out of range are errors."""
    with pytest.raises(CorruptBinlog, match="JSON"):
        json_value(document, KeyDictionary(()))


def test_keys_of_documents_are_shared_and_trimmed() -> None:
    """The dictionary grows from row to row until it exceeds the limit, then only the columns are kept."""
    keys = KeyDictionary((b"id", b"doc"))
    plain = keys.metadata
    for number in range(1000):
        keys.id_of(f"a long key of a document {number}".encode())
        keys.trim()
    assert len(keys.metadata) < 2 * KeyDictionary.LIMIT
    keys.id_of(b"x" * KeyDictionary.LIMIT)
    keys.id_of(b"y")
    keys.trim()
    assert keys.metadata == plain


@pytest.mark.parametrize(
    ("path", "legs"),
    [
        ("$", ()),
        ("$.a", (b"a",)),
        ('$."a b"[3].c', (b"a b", 3, b"c")),
        ('$."q\\"uote"', (b'q"uote',)),
        ("$[0][1]", (0, 1)),
    ],
)
def test_paths_of_json_diffs(path: str, legs: tuple[Any, ...]) -> None:
    """Plain and quoted names, and array indexes."""
    assert parse_path(path) == legs


@pytest.mark.parametrize(
    ("number", "width"), [(0, 1), (0xFF, 1), (0x100, 2), (0xFFFF, 2), (0x10000, 4), (0xFFFFFFFF, 4)]
)
def test_offsets_have_the_smallest_width(number, width):
    """The largest number of each width still fits."""
    assert variant.width_of(number) == width
    number.to_bytes(width, "little")
