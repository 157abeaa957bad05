"""Date and time values of row images and of binary JSON: raw bytes or packed numbers to VARIANT values.

Format: MySQL internals, "Date and time data type representation" (mysys/my_time.cc). Zero, partly zero, year-0 and
invalid dates have no VARIANT type: they are converted to MySQL's text.
"""

from collections.abc import Callable
from datetime import date

from dmdelta.binlog.values.variant import date_piece, string_piece, timestamp_ntz_piece, timestamp_piece

Convert = Callable[[bytes], bytes]
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
_SECOND = 1_000_000
_CACHED_DAYS = 4096


def fraction_size(precision: int) -> int:
    """Bytes of the fractional seconds of a temporal type of 0 to 6 digits."""
    return (precision + 1) // 2


def fraction_micros(raw: int, precision: int) -> int:
    """Stored fraction to microseconds: one byte holds hundredths, two ten-thousandths, three microseconds."""
    # Without a fraction the number is 0, whatever it is multiplied by.
    return int(raw * (10_000, 100, 1)[fraction_size(precision) - 1])


def fraction_text(micros: int, precision: int) -> str:
    """`.123` for 123000 µs and 3 digits, nothing for 0 digits."""
    return f".{micros:06d}"[: precision + 1] if precision else ""


class _Days(dict[int, int | None]):
    """Midnights in µs since 1970 by (year*13 + month) << 5 | day, None for an invalid date; a bounded cache."""

    def __missing__(self, packed: int) -> int | None:
        if len(self) >= _CACHED_DAYS:
            self.clear()
        months, day = packed >> 5, packed & 31
        days = days_of(months // 13, months % 13, day)
        self[packed] = None if days is None else days * _DAY
        return self[packed]


_MIDNIGHTS = _Days()


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01, None if it is not a date of the years 1 to 9999."""
    try:
        return date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def date_value(year: int, month: int, day: int) -> bytes:
    """A VARIANT date, or MySQL's text for an invalid one."""
    days = days_of(year, month, day)
    return string_piece(f"{year:04d}-{month:02d}-{day:02d}".encode()) if days is None else date_piece(days)


def datetime_value(packed: int, micros: int, precision: int) -> bytes:
    """A VARIANT timestamp_ntz of MySQL's packed date and time (17 bits months*32+day … 17 bits time), or its text."""
    midnight = _MIDNIGHTS[packed >> 17]
    hour, minute, second = packed >> 12 & 31, packed >> 6 & 63, packed & 63
    if midnight is None or hour > 23 or minute > 59 or second > 59:
        months, day = packed >> 22, packed >> 17 & 31
        text = f"{months // 13:04d}-{months % 13:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
        return string_piece((text + fraction_text(micros, precision)).encode())
    return timestamp_ntz_piece(midnight + (hour * 3600 + minute * 60 + second) * _SECOND + micros)


def time_value(packed: int, micros: int, precision: int, *, negative: bool) -> bytes:
    """MySQL's text of a packed time (10 bits hours, 6 minutes, 6 seconds)."""
    text = f"{'-' if negative else ''}{packed >> 12 & 1023:02d}:{packed >> 6 & 63:02d}:{packed & 63:02d}"
    return string_piece((text + fraction_text(micros, precision)).encode())


def date_of(raw: bytes) -> bytes:
    """DATE: 3 bytes, 5 bits day, 4 bits month, 15 bits year."""
    value = raw[0] | raw[1] << 8 | raw[2] << 16
    return date_value(value >> 9, value >> 5 & 15, value & 31)


def datetime2_of(precision: int) -> Convert:
    """DATETIME(precision): 5 bytes big endian with a sign bit, then the fraction."""

    def convert(raw: bytes) -> bytes:
        packed = int.from_bytes(raw[:5], "big") - 0x8000000000
        return datetime_value(packed, fraction_micros(int.from_bytes(raw[5:], "big"), precision), precision)

    return convert


def timestamp2_of(precision: int) -> Convert:
    """TIMESTAMP(precision): 4 bytes big endian seconds, then the fraction; 0 is the zero timestamp."""
    zero = string_piece(("0000-00-00 00:00:00" + fraction_text(0, precision)).encode())
    unit = fraction_micros(1, precision)

    def convert(raw: bytes) -> bytes:
        seconds = int.from_bytes(raw[:4], "big")
        micros = int.from_bytes(raw[4:], "big") * unit
        return timestamp_piece(seconds * _SECOND + micros) if seconds or micros else zero

    return convert


def time2_of(precision: int) -> Convert:
    """TIME(precision): 3 bytes big endian around 0x800000, then the fraction; negated as a whole."""
    second = 1 << (8 * fraction_size(precision))
    middle = 0x800000 * second

    def convert(raw: bytes) -> bytes:
        signed = int.from_bytes(raw, "big") - middle
        packed, fraction = divmod(abs(signed), second)
        return time_value(packed, fraction_micros(fraction, precision), precision, negative=signed < 0)

    return convert


def old_timestamp_of(raw: bytes) -> bytes:
    """TIMESTAMP of MySQL 5.5: seconds, little endian."""
    return timestamp2_of(0)(raw[::-1])


def old_datetime_of(raw: bytes) -> bytes:
    """DATETIME of MySQL 5.5: the decimal number YYYYMMDDhhmmss."""
    day, time = divmod(int.from_bytes(raw, "little"), 1_000_000)
    months = (day // 10_000) * 13 + day // 100 % 100
    packed = (months << 5 | day % 100) << 17 | (time // 10_000) << 12 | (time // 100 % 100) << 6 | time % 100
    return datetime_value(packed, 0, 0)


def old_time_of(raw: bytes) -> bytes:
    """TIME of MySQL 5.5: the signed decimal number hhmmss."""
    signed = int.from_bytes(raw, "little", signed=True)
    value = abs(signed)
    return time_value((value // 10_000) << 12 | (value // 100 % 100) << 6 | value % 100, 0, 0, negative=signed < 0)
