"""DECIMAL columns: bytes, digits and text at the ends of each group of nine digits."""

from decimal import Decimal
from typing import Any

import pytest

from dmdelta.binlog.values.decimals import decimal_of, decimal_size, decimal_text, decimal_text_of, unscaled_of
from dmdelta.binlog.values.variant import metadata_bytes
from dmdelta.errors import CorruptBinlog
from tests.support.variant_reader import read_variant


def read(value: bytes) -> Any:
    return read_variant(value, metadata_bytes(()))


@pytest.mark.parametrize(
    ("precision", "scale", "raw", "unscaled"),
    [
        (1, 0, "87", 7),
        (1, 1, "87", 7),
        (2, 0, "e3", 99),
        (3, 0, "83e7", 999),
        (5, 0, "800102", 258),
        (9, 0, "bb9ac9ff", 999_999_999),
        (10, 0, "893b9ac9ff", 9_999_999_999),
        (10, 10, "bb9ac9ff09", 9_999_999_999),
        (14, 4, "81 0dfb38d2 04d2", 1_234_567_890_1234),
        (18, 9, "80000001 3b9ac9ff", 1_999_999_999),
        (19, 0, "87 00000000 00000001", 7_000_000_000_000_000_001),
    ],
)
def test_digits_of_both_signs(precision: int, scale: int, raw: str, unscaled: int) -> None:
    """The example of MySQL's source, and full groups; a negative value has all bits inverted."""
    positive = bytes.fromhex(raw)
    negative = bytes(byte ^ 0xFF for byte in positive)
    convert = unscaled_of(precision, scale)
    assert decimal_size(precision, scale) == len(positive)
    assert (convert(positive), convert(negative)) == (unscaled, -unscaled)


@pytest.mark.parametrize(("precision", "raw"), [(1, "8a"), (2, "e4"), (9, "bb9aca00"), (10, "80 3b9aca00"), (1, "75")])
def test_bytes_that_are_not_digits_are_damage(precision: int, raw: str) -> None:
    """The number after the largest one of a group."""
    with pytest.raises(CorruptBinlog, match="not digits"):
        unscaled_of(precision, 0)(bytes.fromhex(raw))


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [
        (0, 0, "0"),
        (0, 2, "0.00"),
        (7, 0, "7"),
        (-7, 0, "-7"),
        (7, 1, "0.7"),
        (7, 3, "0.007"),
        (-7, 3, "-0.007"),
        (1234, 2, "12.34"),
        (-1234, 4, "-0.1234"),
        (10**64, 30, "1" + "0" * 34 + "." + "0" * 30),
    ],
)
def test_a_text_has_all_digits(unscaled: int, scale: int, text: str) -> None:
    """At least one before the point."""
    assert decimal_text(unscaled, scale) == text


@pytest.mark.parametrize(("precision", "kind"), [(37, Decimal), (38, Decimal), (39, str), (65, str)])
def test_a_decimal_beyond_38_digits_is_text(precision: int, kind: type) -> None:
    """Whether it comes from a log or from a query."""
    digits = "9" * (precision - 2) + ".50"
    unscaled = int(digits.replace(".", ""))
    assert decimal_text(unscaled, 2) == digits
    queried = read(decimal_text_of(precision, 2)(digits.encode()))
    assert isinstance(queried, kind)
    assert str(queried) == digits


@pytest.mark.parametrize(("precision", "raw", "expected"), [(38, 7, Decimal("0.07")), (39, 7, "0.07")])
def test_a_column_beyond_38_digits_is_text(precision: int, raw: int, expected: Decimal | str) -> None:
    """Its precision decides, not its value."""
    size = decimal_size(precision, 2)
    found = read(decimal_of(precision, 2)(b"\x80" + bytes(size - 2) + bytes((raw,))))
    assert found == expected
    assert isinstance(found, type(expected))
