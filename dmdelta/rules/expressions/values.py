"""Values in an expression: their MySQL type, and the Spark SQL that computes them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

MAX_DIGITS = 38
"""Precision of Spark's DECIMAL."""
INTEGER_DIGITS = 20
"""Digits of MySQL's largest integer, 2^64 - 1."""


class Refusal(Exception):
    """A part that cannot be translated faithfully, and the reason."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


class Kind(Enum):
    """MySQL's type of a value."""

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
    """A typed value.

    Attributes:
        sql: Spark SQL: a DECIMAL for EXACT, a TIMESTAMP_NTZ for DATETIME, a DECIMAL of seconds for TIME.
        text: the part of the expression, for messages.
        digits, scale: before and after the decimal point of an EXACT.
        unsigned: MySQL raises an error if a difference with it is negative.
        year: has type YEAR, which reads 20 as 2020.
        members: of an ENUM or SET, which also reads text as a number.
        collation, charset: of TEXT; None for values that use the other side's, such as a literal.
        literal: the value of a literal, None for everything else.
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
    """Any number as a floating-point number."""
    if value.kind is Kind.DOUBLE:
        return value
    return Value(Kind.DOUBLE, f"CAST({exact(value).sql} AS DOUBLE)", value.text)


def truth(value: Value) -> str:
    """The SQL of a value as a condition: a number is true unless it is 0."""
    if value.kind is Kind.TRUTH:
        return value.sql
    if value.kind is Kind.NULL:
        return "CAST(NULL AS BOOLEAN)"
    if value.kind in NUMBERS:
        return f"({value.sql} <> 0)"
    raise Refusal(value.text, f"{value.kind.value} as a condition: compare it with a value")


def common_digits(values: Sequence[Value]) -> tuple[int, int]:
    """The digits before and after the decimal point that fit all of the exact numbers.

    Raises:
        Refusal: they exceed DECIMAL's precision.
    """
    digits, scale = max(value.digits for value in values), max(value.scale for value in values)
    if digits + scale > MAX_DIGITS:
        raise Refusal(values[-1].text, f"{digits + scale} digits, Spark's DECIMAL supports {MAX_DIGITS}")
    return digits, scale


def common_kind(values: Sequence[Value]) -> list[Value]:
    """The branches of a CASE, COALESCE and so on as values of one type; NULLs are unchanged.

    Raises:
        Refusal: they have no common type.
    """
    not_null = [value for value in values if value.kind is not Kind.NULL]
    kinds = {value.kind for value in not_null}
    if Kind.EXACT in kinds and kinds <= {Kind.TRUTH, Kind.EXACT}:
        digits, scale = common_digits([exact(value) for value in not_null])
        kind = f"DECIMAL({digits + scale},{scale})"
        return [
            value
            if value.kind is Kind.NULL
            else replace(
                exact(value), sql=f"CAST({exact(value).sql} AS {kind})", digits=digits, scale=scale, literal=None
            )
            for value in values
        ]
    if Kind.DOUBLE in kinds and kinds <= set(NUMBERS):
        return [value if value.kind is Kind.NULL else double(value) for value in values]
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.value for kind in kinds))
        raise Refusal(not_null[-1].text, f"{names} in one expression: MySQL converts them to text")
    if Kind.TEXT in kinds:
        collation, charset = common_collation(not_null)
        return [
            value if value.kind is Kind.NULL else replace(value, collation=collation, charset=charset, literal=None)
            for value in values
        ]
    return list(values)


def common_collation(values: Sequence[Value]) -> tuple[str | None, str | None]:
    """The collation and character set that texts are compared with; None if all are literals.

    Raises:
        Refusal: two columns differ.
    """
    collations = {(value.collation, value.charset) for value in values if value.collation is not None}
    if len(collations) > 1:
        names = ", ".join(sorted(str(collation) for collation, _ in collations))
        raise Refusal(values[-1].text, f"different collations ({names}) in one expression")
    return collations.pop() if collations else (None, None)
