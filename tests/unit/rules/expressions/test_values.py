"""The common type of the values in one expression."""

import pytest

from dmdelta.rules.expressions.values import (
    Kind,
    Refusal,
    Value,
    common_collation,
    common_digits,
    common_kind,
    double,
    exact,
    truth,
)

NULL = Value(Kind.NULL, "NULL", "null")
TRUTH = Value(Kind.TRUTH, "(a IS NULL)", "t")
INT = Value(Kind.EXACT, "i", "i", 20)
CENTS = Value(Kind.EXACT, "d", "d", 8, 2, literal="1.25")
FLOAT = Value(Kind.DOUBLE, "g", "g")
DATE = Value(Kind.DATE, "dt", "dt")
NAME = Value(Kind.TEXT, "n", "n", collation="utf8mb4_bin", charset="utf8mb4")
LITERAL = Value(Kind.TEXT, "'x'", "x", literal="x")
OTHER_NAME = Value(Kind.TEXT, "o", "o", collation="latin1_bin", charset="latin1")


def sqls(*values):
    return [value.sql for value in common_kind(values)]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((NULL, NULL), ["NULL", "NULL"]),
        ((TRUTH, TRUTH), ["(a IS NULL)", "(a IS NULL)"]),
        ((TRUTH, NULL), ["(a IS NULL)", "NULL"]),
        ((INT,), ["CAST(i AS DECIMAL(20,0))"]),
        ((INT, CENTS, NULL), ["CAST(i AS DECIMAL(22,2))", "CAST(d AS DECIMAL(22,2))", "NULL"]),
        (
            (TRUTH, CENTS),
            ["CAST(CAST(CAST((a IS NULL) AS INT) AS DECIMAL(20,0)) AS DECIMAL(22,2))", "CAST(d AS DECIMAL(22,2))"],
        ),
        ((FLOAT, NULL), ["g", "NULL"]),
        ((FLOAT, INT), ["g", "CAST(i AS DOUBLE)"]),
        (
            (TRUTH, INT, FLOAT),
            ["CAST(CAST(CAST((a IS NULL) AS INT) AS DECIMAL(20,0)) AS DOUBLE)", "CAST(i AS DOUBLE)", "g"],
        ),
        ((DATE, NULL), ["dt", "NULL"]),
        ((NAME, LITERAL, NULL), ["n", "'x'", "NULL"]),
    ],
)
def test_values_are_converted_to_their_common_type(values, found):
    """Conditions and numbers to the widest number, everything else only if all have the same type; NULL is unchanged."""
    assert sqls(*values) == found


def test_numbers_have_the_common_digits():
    """A converted number is no literal any longer."""
    converted = common_kind([INT, CENTS])
    assert [(value.kind, value.digits, value.scale, value.literal) for value in converted] == [
        (Kind.EXACT, 20, 2, None)
    ] * 2


def test_texts_have_the_collation_of_the_column():
    """A literal among them as well."""
    named, literal, null = common_kind([NAME, LITERAL, NULL])
    assert (named.collation, named.charset) == (literal.collation, literal.charset) == ("utf8mb4_bin", "utf8mb4")
    assert (literal.literal, null) == (None, NULL)


@pytest.mark.parametrize(
    ("values", "part", "reason"),
    [
        ((FLOAT, NAME, NULL), "n", "a floating-point number and text in one expression"),
        ((INT, NAME), "n", "an exact number and text in one expression"),
        ((NAME, TRUTH, INT), "i", "a condition and an exact number and text in one expression"),
        ((DATE, NAME, LITERAL), "x", "a date and text in one expression"),
        ((DATE, TRUTH), "t", "a condition and a date in one expression"),
        ((NAME, LITERAL, OTHER_NAME), "o", "different collations (latin1_bin, utf8mb4_bin)"),
    ],
)
def test_values_without_a_common_type_are_refused(values, part, reason):
    """The refusal names the last value and all types."""
    with pytest.raises(Refusal) as caught:
        common_kind(values)
    assert caught.value.part == part
    assert caught.value.reason.startswith(reason)


def test_the_digits_that_fit_all_numbers():
    """Up to 38, which is the precision of Spark's DECIMAL; the refusal names the last number."""
    most = Value(Kind.EXACT, "m", "m", 36, 1)
    assert common_digits([INT, CENTS]) == (20, 2)
    assert common_digits([CENTS, most]) == (36, 2)
    with pytest.raises(Refusal) as caught:
        common_digits([Value(Kind.EXACT, "w", "w", 36, 3), CENTS, most])
    assert (caught.value.part, caught.value.reason) == ("m", "39 digits, Spark's DECIMAL supports 38")


def test_the_collation_that_texts_are_compared_with():
    """None if all are literals."""
    assert common_collation([LITERAL, NAME]) == ("utf8mb4_bin", "utf8mb4")
    assert common_collation([LITERAL, LITERAL]) == (None, None)
    with pytest.raises(Refusal) as caught:
        common_collation([NAME, OTHER_NAME, LITERAL])
    assert (caught.value.part, caught.value.reason) == (
        "x",
        "different collations (latin1_bin, utf8mb4_bin) in one expression",
    )


def test_a_condition_as_a_number():
    """It is 0 or 1; a number stays as it is."""
    number = exact(TRUTH)
    assert (number.kind, number.digits, number.scale, number.text) == (Kind.EXACT, 20, 0, "t")
    assert exact(CENTS) is CENTS
    assert double(FLOAT) is FLOAT
    assert double(CENTS) == Value(Kind.DOUBLE, "CAST(d AS DOUBLE)", "d")


@pytest.mark.parametrize(
    ("value", "sql"),
    [(TRUTH, "(a IS NULL)"), (NULL, "CAST(NULL AS BOOLEAN)"), (INT, "(i <> 0)"), (FLOAT, "(g <> 0)")],
)
def test_a_value_as_a_condition(value, sql):
    """A number is true unless it is 0."""
    assert truth(value) == sql


def test_a_date_is_no_condition():
    """The reason names its type."""
    with pytest.raises(Refusal, match="dt: a date as a condition"):
        truth(DATE)
