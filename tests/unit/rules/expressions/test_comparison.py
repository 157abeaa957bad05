"""How two values are compared, by their types: at the limits of what can be translated."""

import pytest

from dmdelta.errors import ConfigError
from dmdelta.rules.expressions.comparison import OPERATORS
from dmdelta.rules.expressions.translate import translate
from tests.support.expressions import TABLE


def translated(expression):
    return translate(expression, TABLE, lambda column: column.name)


@pytest.mark.parametrize("operator", OPERATORS.values())
def test_a_comparison_with_null_is_null(operator):
    """On either side, except for `<=>`, which tests for NULL."""
    expected = "(dt IS NULL)" if operator == "<=>" else "CAST(NULL AS BOOLEAN)"
    assert translated(f"dt {operator} NULL") == translated(f"NULL {operator} dt") == expected
    assert translated(f"dt {operator} dt") == f"(dt {operator} dt)"


@pytest.mark.parametrize(
    ("literal", "column", "sql", "column_sql"),
    [
        ("'7'", "i", "CAST('7' AS DECIMAL(1,0))", "CAST(i AS DECIMAL(20,0))"),
        ("'-70'", "i", "CAST('-70' AS DECIMAL(2,0))", "CAST(i AS DECIMAL(20,0))"),
        ("'123456789012345'", "i", "CAST('123456789012345' AS DECIMAL(15,0))", "CAST(i AS DECIMAL(20,0))"),
        ("1901", "y", "CAST('1901' AS DECIMAL(4,0))", "CAST(y AS DECIMAL(20,0))"),
        ("2155", "y", "CAST('2155' AS DECIMAL(4,0))", "CAST(y AS DECIMAL(20,0))"),
        (f"{10**37}", "i", f"CAST('{10**37}' AS DECIMAL(38,0))", "CAST(i AS DECIMAL(20,0))"),
        ("1.", "i", "CAST('1.' AS DECIMAL(1,0))", "CAST(i AS DECIMAL(20,0))"),
        ("1e3", "g", "CAST('1e3' AS DOUBLE)", "CAST(g AS DOUBLE)"),
        ("'abc'", "vb", "X'616263'", "vb"),
        ("' 2020-01-01 '", "dt", "DATE'2020-01-01'", "dt"),
        ("'0001-01-01'", "dt", "DATE'0001-01-01'", "dt"),
        ("'2020-01-01T10:00:00.5'", "ts", "TIMESTAMP_NTZ'2020-01-01 10:00:00.5'", "ts"),
        ("dt", "ts", "CAST(dt AS TIMESTAMP_NTZ)", "CAST(ts AS TIMESTAMP_NTZ)"),
        ("bn", "vb", "bn", "vb"),
        ("'a'", "bin", "'a'", "bin"),
    ],
)
def test_both_sides_are_converted_alike(literal, column, sql, column_sql):
    """A literal takes the type of the other side, whichever side it is on."""
    padded = (lambda text: f"rtrim({text})") if column == "bin" else str
    assert translated(f"{literal} = {column}") == f"({padded(sql)} = {padded(column_sql)})"
    assert translated(f"{column} = {literal}") == f"({padded(column_sql)} = {padded(sql)})"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10:01:02", "36062"), ("-838:59:59.5", "-3020399.5"), ("1:02:03.000001", "3723.000001"), ("00:00:00", "0")],
)
def test_a_time_is_compared_in_seconds(text, seconds):
    """With its sign and fraction."""
    assert f"(CAST('{seconds}' AS DECIMAL(13,6)) < " in translated(f"'{text}' < tm")
    assert translated(f"tm < '{text}'").endswith(f" < CAST('{seconds}' AS DECIMAL(13,6)))")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("i = '1234567890123456'", "floating-point"),
        ("d = '1'", "floating-point"),
        ("y = '2020'", "floating-point"),
        ("y = 1900", "four digits"),
        ("2156 = y", "four digits"),
        ("y = 2020.0", "four digits"),
        ("i = 1." + "1" * 37, "57 digits"),
        ("tm = dt", "a time with a date"),
        ("bin = vb", "text with bytes"),
        ("dt = vb", "a date with bytes"),
        ("j = j", "only tested for NULL with a value"),
        ("tm = '10:60:00'", "hh:mm:ss"),
        ("tm = '1000:00:00'", "hh:mm:ss"),
        ("tm = '2020-01-01'", "hh:mm:ss"),
        ("ts = '2020-01-01 24:00:00'", "yyyy-mm-dd hh:mm:ss"),
        ("ts = '2020-01-01 10:00:00.1234567'", "yyyy-mm-dd hh:mm:ss"),
        ("'+1' = e", "a member's index"),
        ("s = ' 1'", "a member's index"),
        ("e = '.5'", "a member's index"),
        ("lb < bin", "different collations"),
        ("'a' LIKE 'a'", "LIKE is not supported"),
        ("d.u.i = 1", "the table is d.t"),
        ("x.t.i = 1", "the table is d.t"),
    ],
)
def test_a_comparison_that_may_differ_is_refused(expression, reason):
    """The reason names what cannot be compared."""
    with pytest.raises(ConfigError, match="cannot be translated") as caught:
        translated(expression)
    assert reason in caught.value.message


@pytest.mark.parametrize("text", ["CONCAT(s, '1')", "SUBSTRING(s, 1)", "TRIM(s)", "s COLLATE utf8mb4_bin"])
def test_text_made_of_members_is_compared_as_text(text):
    """A number in quotes is not the index of a member there."""
    assert translated(f"{text} = '11'").endswith(" = rtrim('11'))")


@pytest.mark.parametrize("expression", ["d.t.i = 1", "D.T.I = 1", "T.i = 1", "i = 1"])
def test_names_are_compared_case_insensitively(expression):
    """A column's name may name its table and schema."""
    assert translated(expression) == "(CAST(i AS DECIMAL(20,0)) = CAST('1' AS DECIMAL(1,0)))"


@pytest.mark.parametrize(
    ("expression", "codes"),
    [
        ("bin LIKE 'a|'", [97, 124]),
        ("bin LIKE 'a|' ESCAPE '|'", [97, 124]),
        ("bin LIKE '||%|' ESCAPE '|'", [124, "%", 124]),
        ("bin LIKE '|%a' ESCAPE '|'", [37, 97]),
        ("bin LIKE '_%'", ["_", "%"]),
    ],
)
def test_a_pattern_matches_character_by_character(expression, codes):
    """An escape character makes the next one plain; at the end of the pattern it stands for itself."""
    pattern = "".join({"%": ".*", "_": "."}.get(code) or rf"\\x\u007B{code:x}}}" for code in codes)
    assert translated(expression) == rf"(bin RLIKE '(?s)^{pattern}\\z')"


@pytest.mark.parametrize("expression", ["bin LIKE NULL", "NULL LIKE 'a'"])
def test_a_pattern_or_value_that_is_null(expression):
    """The result is NULL."""
    assert translated(expression) == "CAST(NULL AS BOOLEAN)"
