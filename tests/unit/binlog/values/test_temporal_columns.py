"""Dates and times of today's tables: bit fields with 0 to 6 fractional digits."""

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from dmdelta.binlog.values import temporal
from dmdelta.binlog.values.variant import KeyDictionary
from tests.support.variant_reader import read_variant

DIGITS = range(7)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def plain(value: bytes) -> Any:
    return read_variant(value, KeyDictionary(()).metadata)


def stored(micros: int, digits: int) -> bytes:
    """The fraction as a server stores it: an even number of digits."""
    size = (0, 1, 1, 2, 2, 3, 3)[digits]
    return (micros // 100 ** (3 - size)).to_bytes(size, "big")


def cut(micros: int, digits: int) -> int:
    return micros // 10 ** (6 - digits) * 10 ** (6 - digits)


def text_of(micros: int, digits: int) -> str:
    return f".{micros:06d}"[: digits + 1] if digits else ""


def a_datetime(fields: tuple[int, ...], fraction: bytes = b"") -> bytes:
    """DATETIME2: a sign bit, 17 bits year and month, 5 each of day and hour, 6 each of minute and second."""
    year, month, day, hour, minute, second = fields
    bits = f"1{year * 13 + month:017b}{day:05b}{hour:05b}{minute:06b}{second:06b}"
    return int(bits, 2).to_bytes(5, "big") + fraction


@pytest.mark.parametrize("digits", DIGITS)
def test_a_fraction_has_up_to_six_digits(digits: int) -> None:
    """Two digits per byte; the text has exactly the digits of the type."""
    micros = cut(123_456, digits)
    assert temporal.fraction_size(digits) == len(stored(micros, digits))
    assert temporal.fraction_micros(int.from_bytes(stored(micros, digits), "big"), digits) == micros
    assert temporal.fraction_text(micros, digits) == ("", ".1", ".12", ".123", ".1234", ".12345", ".123456")[digits]
    assert temporal.fraction_text(7, digits) == text_of(7, digits)


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize(
    "fields",
    [
        (1970, 1, 1, 0, 0, 0),
        (1969, 12, 31, 23, 59, 59),
        (2024, 2, 29, 13, 7, 8),
        (1, 1, 1, 0, 0, 1),
        (1000, 10, 31, 1, 0, 0),
        (9999, 12, 31, 23, 59, 59),
    ],
)
def test_a_datetime(fields: tuple[int, ...], digits: int) -> None:
    """The first and the last valid one, with each number of digits."""
    micros = cut(987_654, digits)
    convert = temporal.datetime2_of(digits)
    expected = datetime(*fields) + timedelta(microseconds=micros)  # noqa: DTZ001 - DATETIME has no zone
    assert plain(convert(a_datetime(fields, stored(micros, digits)))) == expected


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize(
    "fields",
    [
        (0, 0, 0, 0, 0, 0),
        (0, 1, 1, 0, 0, 0),
        (2023, 2, 29, 13, 7, 8),
        (2023, 11, 31, 1, 2, 3),
        (2026, 0, 10, 0, 0, 0),
        (2026, 12, 0, 23, 59, 59),
        (2026, 7, 9, 24, 0, 0),
        (2026, 7, 9, 23, 60, 0),
        (2026, 7, 9, 23, 59, 60),
    ],
)
def test_an_invalid_datetime_is_text(fields: tuple[int, ...], digits: int) -> None:
    """MySQL's own text: sql_mode allows such values."""
    micros = cut(40_506, digits)
    year, month, day, hour, minute, second = fields
    expected = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}{text_of(micros, digits)}"
    assert plain(temporal.datetime2_of(digits)(a_datetime(fields, stored(micros, digits)))) == expected


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("seconds", [1, 255, 256, 1_764_079_619, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_timestamp(seconds: int, digits: int) -> None:
    """An instant; MariaDB's last one is in 2106."""
    micros = cut(123_456, digits)
    expected = EPOCH + timedelta(seconds=seconds, microseconds=micros)
    assert plain(temporal.timestamp2_of(digits)(seconds.to_bytes(4, "big") + stored(micros, digits))) == expected


@pytest.mark.parametrize("digits", DIGITS)
def test_the_zero_timestamp_is_text(digits: int) -> None:
    """Only if its fraction is zero, too."""
    convert = temporal.timestamp2_of(digits)
    assert plain(convert(bytes(4) + stored(0, digits))) == "0000-00-00 00:00:00" + text_of(0, digits)
    if digits:
        assert plain(convert(bytes(4) + stored(500_000, digits))) == EPOCH + timedelta(microseconds=500_000)


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize(
    ("hours", "minutes", "seconds"), [(0, 0, 0), (0, 0, 1), (1, 2, 3), (99, 59, 59), (100, 0, 0), (838, 59, 59)]
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_time(hours: int, minutes: int, seconds: int, digits: int, sign: str) -> None:
    """A negative one is stored as the complement of all bytes, with its fraction."""
    micros = cut(100_203, digits)
    if sign and not (hours or seconds or micros):
        return
    fraction = stored(micros, digits)
    bits = 8 * len(fraction)
    value = ((hours << 12 | minutes << 6 | seconds) << bits) + int.from_bytes(fraction, "big")
    middle = 1 << (23 + bits)
    raw = (middle - value if sign else middle + value).to_bytes(3 + len(fraction), "big")
    expected = f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}{text_of(micros, digits)}"
    assert plain(temporal.time2_of(digits)(raw)) == expected


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ((1, 1, 1), date(1, 1, 1)),
        ((1969, 12, 31), date(1969, 12, 31)),
        ((1970, 1, 1), date(1970, 1, 1)),
        ((2024, 2, 29), date(2024, 2, 29)),
        ((9999, 12, 31), date(9999, 12, 31)),
        ((0, 0, 0), "0000-00-00"),
        ((0, 3, 1), "0000-03-01"),
        ((2023, 2, 29), "2023-02-29"),
        ((2023, 0, 31), "2023-00-31"),
        ((2023, 12, 0), "2023-12-00"),
        ((9999, 15, 31), "9999-15-31"),
    ],
)
def test_a_date(fields: tuple[int, int, int], value: date | str) -> None:
    """Three bytes, the lowest first; an invalid date is text."""
    year, month, day = fields
    raw = int(f"{year:015b}{month:04b}{day:05b}", 2).to_bytes(3, "little")
    assert plain(temporal.date_of(raw)) == value


def test_many_dates_keep_their_value() -> None:
    """More different days than are remembered, valid and invalid ones, each twice."""
    convert, first = temporal.datetime2_of(0), datetime(1990, 1, 1)  # noqa: DTZ001
    days = [first + timedelta(days=number) for number in range(5000)]
    for day in (*days, *days):
        assert plain(convert(a_datetime((day.year, day.month, day.day, 0, 0, 0)))) == day
    assert plain(convert(a_datetime((1990, 2, 30, 0, 0, 0)))) == "1990-02-30 00:00:00"
    assert plain(convert(a_datetime((1990, 2, 30, 0, 0, 0)))) == "1990-02-30 00:00:00"
