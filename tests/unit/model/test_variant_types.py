"""Type codes of VARIANT values compared with two readers of the format."""

import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import VariantVal

from dmdelta.model import variant_types as codes
from tests.support.variant_reader import read_variant

NO_KEYS = b"\x01\x00\x00"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (codes.NULL, None),
        (codes.TRUE, True),
        (codes.FALSE, False),
        (struct.pack("<Bb", codes.INT8, -7), -7),
        (struct.pack("<Bh", codes.INT16, -300), -300),
        (struct.pack("<Bi", codes.INT32, -70_000), -70_000),
        (struct.pack("<Bq", codes.INT64, -(2**40)), -(2**40)),
        (struct.pack("<Bd", codes.DOUBLE, 0.1), 0.1),
        (struct.pack("<BBi", codes.DECIMAL4, 2, 1234), Decimal("12.34")),
        (struct.pack("<BBq", codes.DECIMAL8, 2, 10**12), Decimal("10000000000.00")),
        (struct.pack("<BB", codes.DECIMAL16, 0) + (10**20).to_bytes(16, "little"), Decimal(10**20)),
        (struct.pack("<Bi", codes.DATE, 1), date(1970, 1, 2)),
        (struct.pack("<Bq", codes.TIMESTAMP, 1_000_000), datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)),
        (struct.pack("<Bq", codes.TIMESTAMP_NTZ, 1_000_000), datetime(1970, 1, 1, 0, 0, 1)),  # noqa: DTZ001
        (struct.pack("<Bf", codes.FLOAT, 0.5), 0.5),
        (struct.pack("<BI", codes.BINARY, 2) + b"\xff\x00", b"\xff\x00"),
        (struct.pack("<BI", codes.STRING, 2) + b"ab", "ab"),
    ],
)
def test_a_value_has_its_type(value: bytes, expected: Any) -> None:
    """The tests' reader and PySpark's give the same value of the same type."""
    found = read_variant(value, NO_KEYS), VariantVal(value, NO_KEYS).toPython()
    assert found == (expected, expected)
    assert {type(one) for one in found} == {type(expected)}
