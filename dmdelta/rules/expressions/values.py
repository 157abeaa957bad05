"""Values of an expression: what MySQL takes them for, and the SQL that Spark computes them with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

MAX_DIGITS = 38
"""What Spark's DECIMAL holds."""
INTEGER_DIGITS = 20
"""Any of MySQL's integers, 2^64 - 1 included."""


class Refusal(Exception):
    """A part that cannot be translated faithfully, and why."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


class Kind(Enum):
    """What MySQL takes a value for."""

    TRUTH = "a condition"
    EXACT = "an exact number"
    DOUBLE = "a floating-point number"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "a date"
    DATETIME = "a date and time"
    TIME = "a time"
    NULL = "NULL"
    OTHER = "a value of a type that is only tested for NULL"


NUMBERS = (Kind.TRUTH, Kind.EXACT, Kind.DOUBLE)


@dataclass(frozen=True, slots=True)
class Value:
    """A value.

    Attributes:
        sql: Spark's: a DECIMAL for EXACT, a TIMESTAMP_NTZ for DATETIME, a DECIMAL of seconds for TIME.
        text: the part of the expression, for messages.
        digits, scale: before and behind the point of an EXACT.
        unsigned: MySQL fails where a difference with it is below 0.
        year: of the type YEAR, which takes 20 for 2020.
        members: of an ENUM or SET, which takes text for a number, too.
        collation, charset: of TEXT; None for what takes the other side's, such as a literal.
        literal: the value of a literal, None for all else.
    """

    kind: Kind
    sql: str
    text: str
    digits: int = 0
    scale: int = 0
    unsigned: bool = False
    year: bool = False
    members: bool = False
    collation: str | None = None
    charset: str | None = None
    literal: str | None = None


def exact(value: Value) -> Value:
    """A condition or an exact number as an exact number."""
    if value.kind is Kind.TRUTH:
        sql = f"CAST(CAST({value.sql} AS INT) AS DECIMAL({INTEGER_DIGITS},0))"
        return Value(Kind.EXACT, sql, value.text, INTEGER_DIGITS)
    return value


def double(value: Value) -> Value:
    """Any number as a floating-point one."""
    if value.kind is Kind.DOUBLE:
        return value
    return Value(Kind.DOUBLE, f"CAST({exact(value).sql} AS DOUBLE)", value.text)


def truth(value: Value) -> str:
    """The SQL of a value as a condition: a number is true if it is not 0."""
    if value.kind is Kind.TRUTH:
        return value.sql
    if value.kind is Kind.NULL:
        return "CAST(NULL AS BOOLEAN)"
    if value.kind in NUMBERS:
        return f"({value.sql} <> 0)"
    raise Refusal(value.text, f"{value.kind.value} as a condition: compare it with something")


def common_digits(values: Sequence[Value]) -> tuple[int, int]:
    """The digits before and behind the point that hold every one of the exact numbers.

    Raises:
        Refusal: a DECIMAL does not.
    """
    digits, scale = max(value.digits for value in values), max(value.scale for value in values)
    if digits + scale > MAX_DIGITS:
        raise Refusal(values[-1].text, f"{digits + scale} digits, Spark's DECIMAL holds {MAX_DIGITS}")
    return digits, scale


def common_kind(values: Sequence[Value]) -> list[Value]:
    """The branches of a CASE, a COALESCE and alike as values of one type; NULLs stay as they are.

    Raises:
        Refusal: they have no type in common.
    """
    told = [value for value in values if value.kind is not Kind.NULL]
    kinds = {value.kind for value in told}
    if kinds <= {Kind.TRUTH, Kind.EXACT} and kinds != {Kind.TRUTH}:
        numbers = [exact(value) for value in told]
        digits, scale = common_digits(numbers) if numbers else (1, 0)
        kind = f"DECIMAL({digits + scale},{scale})"
        return [
            value
            if value.kind is Kind.NULL
            else replace(
                exact(value), sql=f"CAST({exact(value).sql} AS {kind})", digits=digits, scale=scale, literal=None
            )
            for value in values
        ]
    if kinds <= set(NUMBERS) and Kind.DOUBLE in kinds:
        return [value if value.kind is Kind.NULL else double(value) for value in values]
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.value for kind in kinds))
        raise Refusal(told[-1].text, f"{names} in one place: MySQL turns them into text")
    if kinds == {Kind.TEXT}:
        collation, charset = common_collation(told)
        return [
            value if value.kind is Kind.NULL else replace(value, collation=collation, charset=charset, literal=None)
            for value in values
        ]
    return list(values)


def common_collation(values: Sequence[Value]) -> tuple[str | None, str | None]:
    """The collation and character set that texts are compared by; None for literals alone.

    Raises:
        Refusal: two columns differ.
    """
    found = {(value.collation, value.charset) for value in values if value.collation is not None}
    if len(found) > 1:
        names = ", ".join(sorted(str(collation) for collation, _ in found))
        raise Refusal(values[-1].text, f"different collations ({names}) in one place")
    return found.pop() if found else (None, None)
