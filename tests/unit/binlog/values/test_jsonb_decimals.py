"""Decimals inside JSON documents."""

from decimal import Decimal

import pytest

from dmdelta.binlog.values.column_types import WireType
from dmdelta.binlog.values.jsonb import json_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog
from tests.support.variant_reader import read_variant

OPAQUE = 15


def document(precision: int, scale: int, digits: bytes) -> bytes:
    """A document that is a decimal."""
    data = bytes((precision, scale)) + digits
    return bytes((OPAQUE, WireType.NEWDECIMAL, len(data))) + data


@pytest.mark.parametrize(
    ("precision", "scale", "digits", "value"),
    [
        (3, 1, b"\x8c\x05", Decimal("12.5")),
        (3, 1, b"\x73\xfa", Decimal("-12.5")),
        (2, 2, b"\x8c", Decimal("0.12")),
        (9, 0, b"\x80\0\0\x07", Decimal(7)),
        (65, 0, b"\x80" + bytes(27) + b"\x07", Decimal(7)),
        (65, 0, b"\x81" + bytes(28), "1" + "0" * 63),
    ],
    ids=str,
)
def test_a_decimal(precision: int, scale: int, digits: bytes, value: Decimal | str) -> None:
    """It has up to 65 digits; it is text if VARIANT's decimal cannot hold it."""
    keys = KeyDictionary(())
    assert read_variant(json_value(document(precision, scale, digits), keys), keys.metadata) == value


@pytest.mark.parametrize(
    ("precision", "scale", "digits"),
    [(66, 0, b"\x80" + bytes(29)), (2, 3, b"\x80\0"), (3, 1, b"\x8c"), (3, 1, b"\x8c\x05\0")],
    ids=["66 digits", "scale beyond precision", "too short", "too long"],
)
def test_a_decimal_of_another_size_is_refused(precision: int, scale: int, digits: bytes) -> None:
    with pytest.raises(CorruptBinlog):
        json_value(document(precision, scale, digits), KeyDictionary(()))
