"""Columnar values of row images equal those of the strict reader of single images."""

import struct

import pyarrow as pa
import pytest

from dmdelta.binlog.values import variant
from dmdelta.bronze.arrow import VARIANT
from dmdelta.changelog.variant_arrays import blobs, doubles, texts
from dmdelta.changelog.variant_layout import Images
from dmdelta.errors import LakehouseError
from dmdelta.model import variant_types
from tests.support.variant_pieces import int8_piece

KEYS = (b"id", b"c", b"json")


def images_of(rows, keys=KEYS):
    """Images of rows {key number: VARIANT value}; None: no image. In two chunks, as Spark sends them."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    values = [
        b"" if row is None else variant.object_piece([(number, row[number]) for number in order if number in row])
        for row in rows
    ]
    metadata = pa.array([variant.metadata_bytes(keys)] * len(rows), pa.binary())
    absent = pa.array([row is None for row in rows])
    column = pa.StructArray.from_arrays([pa.array(values, pa.binary()), metadata], fields=list(VARIANT), mask=absent)
    half = len(rows) // 2
    return Images(pa.chunked_array([column.slice(0, half), column.slice(half)]))


def float_piece(number):
    return bytes((variant_types.FLOAT,)) + struct.pack("<f", number)


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        (int8_piece(-128), "-128"),
        (variant.int16_piece(32767), "32767"),
        (variant.int32_piece(-(2**31)), "-2147483648"),
        (variant.int64_piece(-(2**63)), "-9223372036854775808"),
        (variant.uint64_piece(2**64 - 1), "18446744073709551615"),
        (variant.decimal_piece(-12, 4, 9), "-0.0012"),
        (variant.decimal_piece(0, 2, 9), "0.00"),
        (variant.decimal_piece(10**17 + 1, 17, 18), "1.00000000000000001"),
        (variant.decimal_piece(-(10**37), 30, 38), "-10000000.000000000000000000000000000000"),
        (variant.decimal_piece(1, 30, 38), "0.000000000000000000000000000001"),
        (variant.string_piece(b""), ""),
        (variant.string_piece("é'\\\0".encode()), "é'\\\0"),
        (variant.string_piece(b"x" * 63), "x" * 63),
        (variant.string_piece(b"y" * 64), "y" * 64),
        (variant.string_piece(b"z" * 70000), "z" * 70000),
        (variant.date_piece(-719162), "0001-01-01"),
        (variant.date_piece(2932896), "9999-12-31"),
        (variant.timestamp_piece(1), "1970-01-01 00:00:00.000001"),
        (variant.timestamp_ntz_piece(-62135596800000000), "0001-01-01 00:00:00.000000"),
        (variant.timestamp_ntz_piece(253402300799999999), "9999-12-31 23:59:59.999999"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_texts(piece, text):
    """Each type alone, and mixed with NULLs, absent fields, absent images and values of other types."""
    assert texts(images_of([{1: piece}]), "c").to_pylist() == [text]
    rows = [
        {1: variant_types.NULL},
        {1: piece},
        None,
        {0: piece},
        {0: variant_types.NULL, 1: piece},
        {1: variant.string_piece(b"o")},
    ]
    assert texts(images_of([*rows, {0: piece, 1: piece}]), "c").to_pylist() == [
        None,
        text,
        None,
        None,
        text,
        "o",
        text,
    ]


def test_doubles_and_bytes():
    """A FLOAT becomes the double of equal value; bytes are unchanged."""
    rows = [
        {0: float_piece(0.1), 1: variant.binary_piece(b"\0\xff")},
        {0: variant.double_piece(1e300)},
        {1: variant_types.NULL},
    ]
    assert doubles(images_of(rows), "id").to_pylist() == [struct.unpack("<f", struct.pack("<f", 0.1))[0], 1e300, None]
    assert blobs(images_of(rows), "c").to_pylist() == [b"\0\xff", None, None]


def test_many_fields_and_large_images():
    """More than 255 fields, two-byte ids and offsets: every field is found."""
    keys = tuple(f"k{number}".encode() for number in range(300))
    row = {number: variant.string_piece(f"v{number}".encode() * 50) for number in range(300)}
    found = images_of([row, {7: row[7]}], keys)
    assert texts(found, "k299").to_pylist() == ["v299" * 50, None]
    assert texts(found, "k7").to_pylist() == ["v7" * 50] * 2


def test_nested_values_have_no_text():
    """A document in a column that is read as text is an error, not a wrong text."""
    with pytest.raises(LakehouseError, match="column c"):
        texts(images_of([{1: variant.array_piece([variant_types.NULL])}]), "c")
