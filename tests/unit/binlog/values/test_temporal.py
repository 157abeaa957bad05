"""Dates and times of tables that MySQL 5.5 created: decimal numbers instead of bit fields."""

from datetime import datetime, timezone
from typing import Any

import pytest

from dmdelta.binlog.values.temporal import old_datetime_of, old_time_of, old_timestamp_of
from dmdelta.binlog.values.variant import KeyDictionary
from tests.support.variant_reader import read_variant


def plain(value: bytes) -> Any:
    return read_variant(value, KeyDictionary(()).metadata)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (2026_11_25_14_06_59, datetime(2026, 11, 25, 14, 6, 59)),  # noqa: DTZ001 - DATETIME has no zone
        (1000_01_01_00_00_00, datetime(1000, 1, 1)),  # noqa: DTZ001
        (9999_12_31_23_59_59, datetime(9999, 12, 31, 23, 59, 59)),  # noqa: DTZ001
        (0, "0000-00-00 00:00:00"),
        (2026_00_10_00_00_00, "2026-00-10 00:00:00"),
    ],
)
def test_an_old_datetime(number: int, value: Any) -> None:
    """YYYYMMDDhhmmss; an invalid date is text."""
    assert plain(old_datetime_of(number.to_bytes(8, "little"))) == value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (14_06_59, "14:06:59"),
        (-14_06_59, "-14:06:59"),
        (838_59_59, "838:59:59"),
        (-838_59_59, "-838:59:59"),
        (0, "00:00:00"),
    ],
)
def test_an_old_time(number: int, text: str) -> None:
    """hhmmss with a sign."""
    assert plain(old_time_of(number.to_bytes(3, "little", signed=True))) == text


@pytest.mark.parametrize("seconds", [1, 255, 256, 1_764_079_619, 2**31 - 1])
def test_an_old_timestamp(seconds: int) -> None:
    """Seconds since 1970 in UTC."""
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    assert plain(old_timestamp_of(seconds.to_bytes(4, "little"))) == moment
