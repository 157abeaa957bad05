"""Arithmetic with MySQL's precision."""

from math import ceil

from sqlglot import exp

from dmdelta.rules.expressions.values import INTEGER_DIGITS, MAX_DIGITS, NUMBERS, Kind, Refusal, Value, double, exact

_TRY: dict[type[exp.Expr], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Div: "try_divide",
    exp.Mod: "try_mod",
}
_WORD = 9
"""MySQL stores nine decimal digits in a word and truncates quotients at a word boundary."""
_SPARKS_SCALE = 12
"""Sufficiently below the 18 digits of Spark's quotient that double rounding has no effect."""
_SPARE_DIGITS = 4
"""Spark's quotient has at least so many more digits than are compared; each decimal of the divisor costs it one."""
_KEPT_DECIMALS = 6
"""Spark keeps so many decimals of a product whose type is wider than its DECIMAL, and cuts off further ones."""
_MORE_DIGITS = 4
"""The default of div_precision_increment."""


def calculated(kind: type[exp.Expr], left: Value, right: Value, part: str, flavor: str) -> Value:
    """`left + right` and so on; `flavor`: mysql and mariadb divide differently.

    Raises:
        Refusal: the operands are not numbers, or Spark's types cannot hold the result.
    """
    for value in (left, right):
        if value.kind is not Kind.NULL and value.kind not in NUMBERS:
            raise Refusal(value.text, f"arithmetic with {value.kind.value}")
    if Kind.NULL in (left.kind, right.kind):
        return Value(Kind.NULL, "NULL", part)
    if Kind.DOUBLE in (left.kind, right.kind):
        if kind is exp.IntDiv:
            raise Refusal(part, "DIV of floating-point numbers")
        return Value(Kind.DOUBLE, f"{_TRY[kind]}({double(left).sql}, {double(right).sql})", part)
    left, right = exact(left), exact(right)
    if kind is exp.Div:
        return _quotient(left, right, part, flavor)
    if kind is exp.IntDiv:
        return _whole_quotient(left, right, part)
    if kind is exp.Sub and (left.unsigned or right.unsigned):
        raise Refusal(part, "MySQL raises an error if a difference with an UNSIGNED number is negative")
    return _exact(kind, left, right, part)


def _exact(kind: type[exp.Expr], left: Value, right: Value, part: str) -> Value:
    sql = f"{_TRY[kind]}({left.sql}, {right.sql})"
    unsigned = left.unsigned or right.unsigned
    if left.scale == right.scale == 0 and max(left.digits, right.digits) <= INTEGER_DIGITS:
        # MySQL raises an error beyond 64 bits.
        return Value(Kind.EXACT, f"try_cast({sql} AS DECIMAL({INTEGER_DIGITS},0))", part, INTEGER_DIGITS, 0, unsigned)
    if kind is exp.Mul:
        digits, scale = left.digits + right.digits, left.scale + right.scale
    else:
        digits, scale = max(left.digits, right.digits) + 1, max(left.scale, right.scale)
    # The type of Spark's product has one digit more than the product.
    needed = digits + scale + (1 if kind is exp.Mul and scale > _KEPT_DECIMALS else 0)
    if needed > MAX_DIGITS:
        raise Refusal(part, f"{needed} digits, Spark's DECIMAL supports {MAX_DIGITS}")
    return Value(Kind.EXACT, f"CAST({sql} AS DECIMAL({digits + scale},{scale}))", part, digits, scale, unsigned)


def _quotient(left: Value, right: Value, part: str, flavor: str) -> Value:
    """MySQL truncates a quotient after whole words, beyond the displayed digits; MariaDB rounds to the displayed
    digits.
    """
    words = [_WORD * ceil(value.scale / _WORD) for value in (left, right)]
    more = max(0, _MORE_DIGITS - sum(words) + left.scale + right.scale)
    rounds = flavor == "mariadb"
    scale = left.scale + _MORE_DIGITS if rounds else _WORD * ceil((sum(words) + more) / _WORD)
    most = min(_SPARKS_SCALE if rounds else _WORD, MAX_DIGITS - INTEGER_DIGITS - right.scale - _SPARE_DIGITS)
    if scale > most or max(left.digits, right.digits) > INTEGER_DIGITS:
        raise Refusal(part, "the quotient has more digits than Spark supports: multiply instead")
    sides = [f"CAST({value.sql} AS DECIMAL({INTEGER_DIGITS + value.scale},{value.scale}))" for value in (left, right)]
    quotient = f"try_divide({', '.join(sides)})"
    cut = f"({quotient} - try_mod({quotient}, CAST('0.000000001' AS DECIMAL(9,9))))"
    sql = f"try_cast({quotient if rounds else cut} AS DECIMAL({INTEGER_DIGITS + scale},{scale}))"
    return Value(Kind.EXACT, sql, part, INTEGER_DIGITS, scale, left.unsigned or right.unsigned)


def _whole_quotient(left: Value, right: Value, part: str) -> Value:
    if left.scale or right.scale or max(left.digits, right.digits) > INTEGER_DIGITS:
        raise Refusal(part, "DIV of numbers that are not integers")
    whole = f"CAST(CAST({left.sql} AS DECIMAL(20,0)) - try_mod({left.sql}, {right.sql}) AS DECIMAL(20,0))"
    sql = f"try_cast(try_divide({whole}, CAST({right.sql} AS DECIMAL(20,0))) AS DECIMAL(20,0))"
    return Value(Kind.EXACT, sql, part, INTEGER_DIGITS, 0, left.unsigned or right.unsigned)


def negated(value: Value, part: str) -> Value:
    """`- value`.

    Raises:
        Refusal: the value is not a number, or is unsigned.
    """
    if value.kind is Kind.NULL:
        return value
    if value.kind not in NUMBERS or value.unsigned:
        raise Refusal(part, f"minus {'an UNSIGNED number' if value.unsigned else value.kind.value}")
    number = value if value.kind is Kind.DOUBLE else exact(value)
    literal = f"-{value.literal}" if value.literal is not None else None
    return Value(number.kind, f"(- {number.sql})", part, number.digits, number.scale, literal=literal)
