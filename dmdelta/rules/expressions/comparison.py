"""Comparisons and LIKE."""

import re

from sqlglot import exp

from dmdelta.model.spark_sql import literal
from dmdelta.rules.expressions.collations import Collation, collation_of
from dmdelta.rules.expressions.terms import temporal_literal
from dmdelta.rules.expressions.values import (
    NUMBERS,
    Kind,
    Refusal,
    Value,
    common_collation,
    common_digits,
    double,
    exact,
)

_TEMPORAL = (Kind.DATE, Kind.DATETIME, Kind.TIME)
_FORMS = {
    **{frozenset({kind}): "{}" for kind in (Kind.BYTES, *_TEMPORAL)},
    frozenset({Kind.DATE, Kind.DATETIME}): "CAST({} AS TIMESTAMP_NTZ)",
}
"""How values of one kind, or of two different kinds, are compared."""
_WHOLE = re.compile(r"-?\d{1,15}")
_NUMERIC = re.compile(r"\s*[-+]?[\d.]")
_YEARS = range(1901, 2156)
OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}


def compare(left: Value, operator: str, right: Value, part: str) -> Value:
    """A comparison, by the rules that MySQL derives from the two types.

    Raises:
        Refusal: Spark cannot compute the same result.
    """
    if Kind.NULL in (left.kind, right.kind):
        other = right if left.kind is Kind.NULL else left
        return Value(Kind.TRUTH, f"({other.sql} IS NULL)" if operator == "<=>" else "CAST(NULL AS BOOLEAN)", part)
    if left.kind is Kind.TEXT and left.literal is not None and right.kind is not Kind.TEXT:
        left = _as_other(left, right)
    elif right.kind is Kind.TEXT and right.literal is not None and left.kind is not Kind.TEXT:
        right = _as_other(right, left)
    return Value(Kind.TRUTH, _compared(left, operator, right, part), part)


def _compared(left: Value, operator: str, right: Value, part: str) -> str:
    if left.kind in NUMBERS and right.kind in NUMBERS:
        return _numbers(left, operator, right)
    if left.kind is right.kind is Kind.TEXT:
        return _texts(left, operator, right, part)
    form = _FORMS.get(frozenset({left.kind, right.kind}))
    if form is None:
        names = " with ".join(value.kind.value for value in (left, right))
        raise Refusal(part, f"{names}: MySQL compares them by converting both to numbers or text")
    return f"({form.format(left.sql)} {operator} {form.format(right.sql)})"


def _numbers(left: Value, operator: str, right: Value) -> str:
    if Kind.DOUBLE in (left.kind, right.kind):
        return f"({double(left).sql} {operator} {double(right).sql})"
    for value, other in ((left, right), (right, left)):
        if value.year and other.literal is not None and not (other.scale == 0 and int(other.literal) in _YEARS):
            raise Refusal(other.text, "MySQL reads short numbers compared with a YEAR as years: write four digits")
    left, right = exact(left), exact(right)
    common_digits([left, right])
    return f"({left.sql} {operator} {right.sql})"


def _as_other(text: Value, other: Value) -> Value:
    """A text literal converted to the other side's type, as MySQL does for constants."""
    assert text.literal is not None
    if other.kind in _TEMPORAL:
        return temporal_literal(text, other.kind)
    if other.kind is Kind.BYTES:
        return Value(Kind.BYTES, f"X'{text.literal.encode().hex()}'", text.text)
    if other.kind in NUMBERS and other.scale == 0 and not other.year and _WHOLE.fullmatch(text.literal):
        digits = len(text.literal.lstrip("-"))
        return Value(Kind.EXACT, f"CAST('{text.literal}' AS DECIMAL({digits},0))", text.text, digits)
    if other.kind in NUMBERS:
        raise Refusal(text.text, "MySQL compares text and numbers as floating-point numbers: write a number")
    return text


def _texts(left: Value, operator: str, right: Value, part: str) -> str:
    for value, other in ((left, right), (right, left)):
        if value.members and other.literal is not None and _NUMERIC.match(other.literal):
            raise Refusal(other.text, "MySQL may read a number compared with an ENUM or SET as a member's index")
    collation = _collation([left, right], part)
    if operator in ("<", "<=", ">", ">=") and not collation.ordered:
        raise Refusal(part, f"Spark does not support the order of {collation.name}; = and LIKE are supported")
    return collation.compared(_plain(left, collation), _plain(right, collation), operator)


def _collation(values: list[Value], part: str) -> Collation:
    name, charset = common_collation(values)
    if name is None:
        raise Refusal(part, "both sides are literals, which MySQL compares with the connection's collation")
    collation = collation_of(name or None, charset, part)
    for value in values:
        if value.literal is not None and charset == "latin1" and not _in_latin1(value.literal):
            raise Refusal(value.text, "it contains characters that the column's character set does not have")
    return collation


def _in_latin1(text: str) -> bool:
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: Value, collation: Collation) -> str:
    if value.literal is not None:
        return literal(collation.plain_literal(value.literal))
    return collation.plain(value.sql)


def like(value: Value, pattern: Value, escape: str, part: str) -> Value:
    """`value LIKE 'pattern'`: character by character, including trailing spaces.

    Raises:
        Refusal: the pattern is not a literal, or the value is not text.
    """
    if Kind.NULL in (value.kind, pattern.kind):
        return Value(Kind.TRUTH, "CAST(NULL AS BOOLEAN)", part)
    if pattern.kind is not Kind.TEXT or pattern.literal is None:
        raise Refusal(pattern.text, "the pattern is not a literal")
    if value.kind is not Kind.TEXT or value.literal is not None:
        raise Refusal(value.text, f"LIKE is not supported for {value.kind.value}: MySQL converts it to text")
    collation = _collation([value, pattern], part)
    regex, at = "", 0
    while at < len(pattern.literal):
        char = pattern.literal[at]
        if char == escape and at + 1 < len(pattern.literal):
            at += 1
            regex += collation.alike(pattern.literal[at], part)
        else:
            regex += {"%": ".*", "_": "."}.get(char) or collation.alike(char, part)
        at += 1
    sql = f"({collation.searched(value.sql)} RLIKE {literal(f'(?s)^{regex}' + chr(92) + 'z')})"
    return Value(Kind.TRUTH, sql, part)
