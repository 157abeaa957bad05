"""VARIANT values have the shortest form that Spark reads, and the dictionary of keys is bounded."""

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import VariantVal

from dmdelta.binlog.values import variant
from dmdelta.binlog.values.variant import KeyDictionary
from tests.support.variant_reader import read_keys, read_variant

NO_KEYS = variant.metadata_bytes(())


def read(value: bytes) -> Any:
    return read_variant(value, NO_KEYS)


@pytest.mark.parametrize(
    ("size", "header"), [(0, 1), (1, 1), (63, 1), (64, 5), (65, 5), (1022, 5), (1023, 5), (1024, 5), (70_000, 5)]
)
def test_a_short_string_has_a_header_of_one_byte(size: int, header: int) -> None:
    """Up to 63 bytes."""
    value = variant.string_piece(b"x" * size)
    assert read(value) == "x" * size
    assert len(value) == header + size
    assert variant.string_header(size) + b"x" * size == value


def test_sizes_of_strings_include_the_header() -> None:
    """Those with 0 to 1023 bytes."""
    assert tuple(len(variant.string_piece(b"x" * size)) for size in range(1024)) == variant.STRING_SIZES


@pytest.mark.parametrize(("digits", "size"), [(1, 6), (9, 6), (10, 10), (18, 10), (19, 18), (38, 18)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_decimal_has_the_smallest_size(digits: int, size: int, sign: int) -> None:
    """4, 8 or 16 bytes behind its type and scale, for the largest number of these digits."""
    unscaled = sign * (10**digits - 1)
    value = variant.decimal_piece(unscaled, 1, digits)
    assert len(value) == size
    assert read(value) == Decimal((sign < 0, (9,) * digits, -1))


@pytest.mark.parametrize(
    ("piece", "number", "size"),
    [
        (variant.int16_piece, -(2**15), 3),
        (variant.int32_piece, -(2**31), 5),
        (variant.int64_piece, -(2**63), 9),
        (variant.uint64_piece, 2**64 - 1, 18),
        (variant.double_piece, -1.5, 9),
    ],
)
def test_numbers(piece: Any, number: float, size: int) -> None:
    """Both readers give the same number."""
    value = piece(number)
    assert len(value) == size
    assert read(value) == number
    assert VariantVal(value, NO_KEYS).toPython() == number


@pytest.mark.parametrize("count", [0, 1, 255, 256, 300, 65_536])
@pytest.mark.parametrize("size", [0, 1, 300])
def test_arrays_of_every_width(count: int, size: int) -> None:
    """Counts above 255 have four bytes, offsets one, two or four."""
    value = variant.array_piece([variant.string_piece(b"x" * size)] * count)
    assert read(value) == ["x" * size] * count
    total = count * (len(variant.string_piece(b"x" * size)))
    width = 1 if total < 256 else 2 if total < 65_536 else 4
    assert len(value) == 1 + (4 if count > 255 else 1) + width * (count + 1) + total


@pytest.mark.parametrize("total", [255, 256, 65_535, 65_536])
def test_offsets_of_an_object_have_the_smallest_width(total: int) -> None:
    """One, two or four bytes for the size of all values."""
    width = 1 if total < 256 else 2 if total < 65_536 else 4
    keys = KeyDictionary((b"k",))
    text = b"x" * (total - 5)
    value = variant.object_piece([(0, variant.string_piece(text))])
    assert read_variant(value, keys.metadata) == {"k": text.decode()}
    assert len(value) == 2 + 1 + 2 * width + total


@pytest.mark.parametrize(("last", "width"), [(255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_ids_have_the_smallest_width(last: int, width: int) -> None:
    """One, two or four bytes for the largest id."""
    names = [b"%d" % number for number in range(last + 1)]
    value = variant.object_piece([(last, variant.int16_piece(7))])
    assert read_variant(value, variant.metadata_bytes(names)) == {str(last): 7}
    assert len(value) == 2 + width + 2 + 3


@pytest.mark.parametrize("names", [0, 1, 63, 64, 255, 256, 300, 70_000])
@pytest.mark.parametrize("size", [0, 4])
def test_a_dictionary_of_every_width(names: int, size: int) -> None:
    """Its width covers the number of keys and the bytes of all of them."""
    keys = [b"%0*x" % (size, number) if size else b"" for number in range(names)]
    found = variant.metadata_bytes(keys)
    assert read_keys(found) == [key.decode() for key in keys]
    longest = max(names, sum(map(len, keys)))
    width = 1 if longest < 256 else 2 if longest < 65_536 else 4
    assert len(found) == 1 + width * (names + 2) + sum(map(len, keys))


def test_a_key_has_one_id() -> None:
    """Names of columns come first; the same name is one key."""
    keys = KeyDictionary((b"id", b"doc", b"id"))
    assert [keys.id_of(key) for key in (b"doc", b"new", b"id", b"new", b"other")] == [1, 2, 0, 2, 3]
    assert read_keys(keys.metadata) == ["id", "doc", "new", "other"]


def test_a_key_that_is_not_utf8_is_refused() -> None:
    """It would make the dictionary unreadable, and is not part of it."""
    keys = KeyDictionary((b"id",))
    with pytest.raises(UnicodeDecodeError):
        keys.id_of(b"\xff")
    assert read_keys(keys.metadata) == ["id"]


@pytest.mark.parametrize("beyond", [False, True])
def test_keys_are_kept_up_to_the_limit(*, beyond: bool) -> None:
    """The limit is for the bytes of all JSON keys, not of the columns' names."""
    keys = KeyDictionary((b"c" * KeyDictionary.LIMIT,))
    half = KeyDictionary.LIMIT // 2
    for letter, size in ((b"a", half), (b"b", half), (b"b", half), (b"d", 1 if beyond else 0)):
        keys.id_of(letter * size)
    keys.trim()
    assert len(read_keys(keys.metadata)) == (1 if beyond else 4)
    assert keys.id_of(b"e") == (1 if beyond else 4)
