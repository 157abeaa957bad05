"""Binary JSON, byte by byte: the numbers at the ends of each type, and damage beside what is valid."""

import struct
from typing import Any

import pytest

from dmdelta.binlog.values import jsonb
from dmdelta.binlog.values.jsonb import json_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog
from tests.support.jsonb_writer import write_jsonb
from tests.support.variant_reader import read_variant


def read(document: bytes) -> Any:
    keys = KeyDictionary((b"id",))
    value = json_value(document, keys)
    return read_variant(value, keys.metadata)


def refused(document: bytes) -> str:
    with pytest.raises(CorruptBinlog, match="cannot read a JSON document") as caught:
        read(document)
    return caught.value.message


@pytest.mark.parametrize(
    ("kind", "code", "numbers"),
    [
        (5, "<h", (-(2**15), -1, 0, 2**15 - 1)),
        (6, "<H", (0, 2**15, 2**16 - 1)),
        (7, "<i", (-(2**31), -1, 2**31 - 1)),
        (8, "<I", (0, 2**31, 2**32 - 1)),
        (9, "<q", (-(2**63), -1, 2**63 - 1)),
        (10, "<Q", (0, 2**63 - 1, 2**63, 2**64 - 1)),
        (11, "<d", (0.0, -0.5, 1e300)),
    ],
)
def test_numbers_keep_their_value(kind: int, code: str, numbers: tuple[float, ...]) -> None:
    """The first and the last number of each type, signed and unsigned."""
    assert [read(bytes((kind,)) + struct.pack(code, number)) for number in numbers] == list(numbers)


def test_the_largest_signed_number_is_a_bigint() -> None:
    """Unsigned numbers are decimals only if no bigint holds them, so that equal numbers have one type."""
    keys = KeyDictionary(())
    unsigned, signed = (json_value(bytes((kind,)) + struct.pack("<Q", 2**63 - 1), keys) for kind in (10, 9))
    assert unsigned == signed


@pytest.mark.parametrize(("code", "value"), [(0, None), (1, True), (2, False)])
def test_literals(code: int, value: object) -> None:
    assert read(bytes((4, code))) is value


@pytest.mark.parametrize(
    "document",
    [b"\x04\x03", b"\x04\xff\x00", b"\x0d\x00\x00", b"\x0e\x00\x00", b"\x10" + bytes(9), b"\xff" + bytes(9)],
)
def test_an_unknown_type_is_damage(document: bytes) -> None:
    """Literals have codes 0 to 2."""
    assert f"unknown JSON type {document[0]}" in refused(document)


@pytest.mark.parametrize("text", ["", "a", "ä", "😀", "x" * 127, "x" * 128, "x" * 16383, "x" * 16384, "x" * 2_097_152])
def test_strings_of_every_length_form(text: str) -> None:
    """A length has seven bits per byte."""
    assert read(write_jsonb(text)) == text


def test_a_length_has_at_most_five_bytes() -> None:
    """Leading zeros are valid up to there."""
    assert read(b"\x0c\x81\x80\x80\x80\x00x") == "x"
    assert "too long" in refused(b"\x0c\x81\x80\x80\x80\x80\x00x")


@pytest.mark.parametrize("document", [b"\x0c\x02\xff\xfe", b"\x0c\x01\x80", b"\x0c\x02\xc3("])
def test_a_string_that_is_not_utf8_is_damage(document: bytes) -> None:
    refused(document)


def test_a_truncated_value_is_damage() -> None:
    """A document without its last byte."""
    for value in ("abc", 5, 70_000, 2**40, 1.5, [2**40], {"k": 2**40}, {"k": "x"}):
        for large in (False, True):
            whole = write_jsonb(value, large=large)
            assert read(whole) == value
            refused(whole[:-1])
    assert read(b"\x0f\xfc\x02ab") == "base64:type252:YWI="
    assert "opaque" in refused(b"\x0f\xfc\x03ab")


@pytest.mark.parametrize("size", [52, 53])
def test_the_growth_of_a_document_is_limited(size: int) -> None:
    """Sixteen elements are the same text: 52 bytes are exactly the limit of eight times the document."""
    text = bytes((size,)) + b"x" * size
    head = struct.pack("<HH", 16, 4 + 3 * 16 + len(text))
    document = b"\x02" + head + struct.pack("<BH", 12, 4 + 3 * 16) * 16 + text
    if size == 52:
        assert read(document) == ["x" * size] * 16
    else:
        assert "overlap" in refused(document)


def test_members_are_in_byte_order_of_their_names() -> None:
    """MySQL orders them by length first."""
    document = write_jsonb({"b": 1, "aa": 2, "é": 3, "z": 4})
    names = [name.decode() for name, _ in jsonb.members(document, 1, large=False)]
    assert names == ["aa", "b", "z", "é"]
    assert read(document) == {"aa": 2, "b": 1, "z": 4, "é": 3}


def an_object(name: tuple[int, int], other: tuple[int, int], names: bytes) -> bytes:
    """A document with two small numbers, whose names have these offsets and sizes."""
    entries = struct.pack("<HHHH", *name, *other) + struct.pack("<BhBh", 5, 1, 5, 2)
    return b"\x00" + struct.pack("<HH", 2, 4 + len(entries) + len(names)) + entries + names


def test_names_beside_their_place_are_damage() -> None:
    """A name beyond the end, and a name that occurs twice."""
    assert read(an_object((18, 1), (19, 1), b"ab")) == {"a": 1, "b": 2}
    assert "name is truncated" in refused(an_object((18, 1), (19, 2), b"ab"))
    assert "name is truncated" in refused(an_object((18, 1), (21, 0), b"ab"))
    assert "duplicate name" in refused(an_object((18, 1), (18, 1), b"ab"))
    refused(an_object((18, 1), (19, 1), b"a\xff"))


@pytest.mark.parametrize(
    ("kind", "small", "large"),
    [*((kind, True, True) for kind in (4, 5, 6)), (7, False, True), (8, False, True)]
    + [(kind, False, False) for kind in (0, 1, 2, 3, 9, 10, 11, 12, 15)],
)
def test_small_values_are_stored_in_place(kind: int, *, small: bool, large: bool) -> None:
    """Those that fit into two bytes, or into four in a large container."""
    assert jsonb.inlined(kind, large=False) is small
    assert jsonb.inlined(kind, large=True) is large


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        [[], {}, [1, [2, [3]]]],
        {"a": [], "b": {"c": {"d": [None, True, False]}}},
        [1, -1, 40_000, 70_000, -70_000, 2**31, 2**40, 2**63, 1.5, "x", "x" * 200],
        {f"k{number:03d}": number for number in range(300)},
    ],
)
def test_containers_of_both_sizes(value: Any, *, large: bool) -> None:
    """Offsets count from the container's own first byte."""
    assert read(write_jsonb(value, large=large)) == value


def test_offsets_beyond_64_kilobytes() -> None:
    """A large container has offsets of four bytes."""
    value = {"first": "x" * 70_000, "second": ["y" * 70_000, 7]}
    assert read(write_jsonb(value, large=True)) == value


def test_endless_nesting_is_damage() -> None:
    """An array whose only element is itself."""
    refused(b"\x02\x01\x00\x07\x00\x02\x00\x00")
