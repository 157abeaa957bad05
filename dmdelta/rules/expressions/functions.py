"""Functions on a row's values."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from dmdelta.rules.expressions.collations import collation_of
from dmdelta.rules.expressions.values import INTEGER_DIGITS, NUMBERS, Kind, Refusal, Value, common_collation, exact

_BYTES_AS_UTF8 = ("utf8mb4", "utf8mb3", "ascii")
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_DAY_PARTS = ("year", "month", "day")


def integer(sql: str, part: str) -> Value:
    """A Spark INT expression as an exact number."""
    return Value(Kind.EXACT, f"CAST({sql} AS DECIMAL({INTEGER_DIGITS},0))", part, INTEGER_DIGITS)


def date_part(kind: type[exp.Expr], value: Value, part: str) -> Value:
    """YEAR(), MONTH(), HOUR() and so on."""
    name = _PARTS[kind]
    if value.kind is not Kind.DATETIME and not (value.kind is Kind.DATE and name in _DAY_PARTS):
        raise Refusal(part, f"not supported for {value.kind.value}")
    return integer(f"{name}({value.sql})", part)


def date_of(value: Value, part: str) -> Value:
    """DATE()."""
    if value.kind not in (Kind.DATE, Kind.DATETIME):
        raise Refusal(part, f"not supported for {value.kind.value}")
    return Value(Kind.DATE, f"CAST({value.sql} AS DATE)", part)


def length(value: Value, part: str, *, in_bytes: bool) -> Value:
    """LENGTH(), which counts bytes, and CHAR_LENGTH()."""
    if value.kind is Kind.BYTES:
        return integer(f"octet_length({value.sql})", part)
    if value.kind is not Kind.TEXT:
        raise Refusal(part, f"not supported for {value.kind.value}: MySQL converts it to text")
    if in_bytes and value.charset not in _BYTES_AS_UTF8:
        raise Refusal(part, f"length in bytes of {value.charset}, but silver holds Unicode: use CHAR_LENGTH")
    return integer(f"{'octet_length' if in_bytes else 'char_length'}({value.sql})", part)


def substring(value: Value, start: Value, size: Value | None, part: str) -> Value:
    """SUBSTRING() from a position in characters, counted from 1."""
    _require_text(value, part)
    numbers = [number for number in (start, size) if number is not None]
    if any(number.literal is None or number.scale or number.kind is not Kind.EXACT for number in numbers):
        raise Refusal(part, "positions must be literal numbers")
    first, count = int(start.literal or 0), int(size.literal or 0) if size is not None else None
    if first < 1 or (count is not None and count < 0):
        raise Refusal(part, "the position is before the first character")
    sql = f"substring({value.sql}, {first})" if count is None else f"substring({value.sql}, {first}, {count})"
    return replace(value, sql=sql, text=part, members=False, literal=None)


def trimmed(value: Value, part: str) -> Value:
    """TRIM() of spaces at both ends."""
    _require_text(value, part)
    return replace(value, sql=f"trim({value.sql})", text=part, members=False, literal=None)


def concatenated(values: Sequence[Value], part: str) -> Value:
    """CONCAT() of texts; NULL if any text is NULL."""
    for value in values:
        _require_text(value, part)
    collation, charset = common_collation(values)
    sql = f"concat({', '.join(value.sql for value in values)})"
    return Value(Kind.TEXT, sql, part, collation=collation, charset=charset)


def absolute(value: Value, part: str) -> Value:
    """ABS()."""
    return _of_number("abs", value, part)


def rounded_down(value: Value, part: str) -> Value:
    """FLOOR()."""
    return _to_whole("floor", value, part)


def rounded_up(value: Value, part: str) -> Value:
    """CEILING()."""
    return _to_whole("ceil", value, part)


def _to_whole(function: str, value: Value, part: str) -> Value:
    if value.kind is Kind.DOUBLE:
        raise Refusal(part, "on a floating-point number")
    number = _of_number(function, value, part)
    digits = number.digits + (1 if number.scale else 0)
    return replace(number, sql=f"CAST({number.sql} AS DECIMAL({digits},0))", digits=digits, scale=0)


def _of_number(function: str, value: Value, part: str) -> Value:
    if value.kind not in NUMBERS:
        raise Refusal(part, f"not supported for {value.kind.value}")
    number = value if value.kind is Kind.DOUBLE else exact(value)
    return replace(number, sql=f"{function}({number.sql})", text=part, literal=None, year=False)


def collated(value: Value, name: str, part: str) -> Value:
    """`value COLLATE name`."""
    _require_text(value, part)
    charset = name.lower().partition("_")[0]
    if value.charset is not None and charset != value.charset:
        raise Refusal(part, f"the collation belongs to a character set other than the column's, {value.charset}")
    collation_of(name.lower(), charset, part)
    return replace(value, text=part, collation=name.lower(), charset=charset, members=False, literal=None)


def signed(value: Value, part: str) -> Value:
    """CAST(value AS SIGNED)."""
    if value.kind not in (Kind.EXACT, Kind.TRUTH) or value.scale:
        raise Refusal(
            part,
            f"not supported for {value.kind.value}" + (" with digits after the decimal point" if value.scale else ""),
        )
    number = exact(value)
    wrapped = f"{number.sql} - 18446744073709551616"
    sql = f"CAST(IF({number.sql} > 9223372036854775807, {wrapped}, {number.sql}) AS DECIMAL({INTEGER_DIGITS},0))"
    return replace(number, sql=sql, text=part, unsigned=False, year=False, literal=None, digits=INTEGER_DIGITS)


def _require_text(value: Value, part: str) -> None:
    if value.kind is not Kind.TEXT:
        raise Refusal(part, f"not supported for {value.kind.value}: MySQL converts it to text")


OF_ONE: dict[type[exp.Expr], Callable[[Value, str], Value]] = {
    exp.Abs: absolute,
    exp.Floor: rounded_down,
    exp.Ceil: rounded_up,
    exp.TsOrDsToDate: date_of,
    exp.Date: date_of,
    exp.Trim: trimmed,
}
DATE_PARTS = tuple(_PARTS)
