"""Which of MySQL's expressions are refused, and which changes a rule applies to; results are compared with servers
elsewhere."""

from pathlib import Path

import pytest

from dmdelta.config import ExpressionFilterRule
from dmdelta.errors import ConfigError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules.expression_filter import left_out
from dmdelta.rules.expressions.translate import translate
from tests.support.expressions import conditions

TABLE = TableSchema(
    "shop",
    "t",
    (
        Column("id", "int"),
        Column("u", "bigint", unsigned=True),
        Column("d", "decimal", precision=10, scale=2),
        Column("d6", "decimal", precision=20, scale=6),
        Column("wide", "decimal", precision=38, scale=20),
        Column("big", "decimal", precision=65, scale=30),
        Column("g", "double"),
        Column("y", "year"),
        Column("dt", "date"),
        Column("tm", "time"),
        Column("ai", "varchar", charset="utf8mb4", collation="utf8mb4_0900_ai_ci"),
        Column("uni", "varchar", charset="utf8mb4", collation="utf8mb4_unicode_ci"),
        Column("bin", "varchar", charset="utf8mb4", collation="utf8mb4_bin"),
        Column("cyr", "varchar", charset="cp1251", collation="cp1251_bin"),
        Column("swe", "varchar", charset="latin1", collation="latin1_swedish_ci"),
        Column("old", "varchar", charset="utf8mb4"),
        Column("e", "enum", members=("a", "1"), charset="utf8mb4", collation="utf8mb4_bin"),
        Column("blob", "blob"),
        Column("j", "json"),
    ),
)


def translated(expression):
    return translate(expression, TABLE, lambda column: f"`{column.name}`")


REFUSED = {
    "nothing = 1": "nothing: shop.t has no column nothing",
    "other.id = 1": "other.id: the table is shop.t",
    "id = 1; DELETE FROM t": "is not one expression",
    "": "is not one expression",
    "id = (": "cannot be parsed",
    "id IN (SELECT 1)": "query is not supported",
    "NOW() > dt": "NOW(): this operator or function is not supported",
    "RAND() < 0.5": "this operator or function is not supported",
    "id & 1": "this operator or function is not supported",
    "bin REGEXP 'a'": "this operator or function is not supported",
    "UPPER(bin) = 'A'": "this operator or function is not supported",
    "bin = 5": "compares them by converting both",
    "id = '5.5'": "compares text and numbers as floating-point",
    "id = 'five'": "compares text and numbers as floating-point",
    "d = '1.5'": "compares text and numbers as floating-point",
    "dt = 20200101": "a date with an exact number",
    "dt = '2020-1-1'": "write a valid value as yyyy-mm-dd",
    "dt = '2020-02-30'": "write a valid value",
    "dt = '0000-00-00'": "write a valid value",
    "dt = '10:00:00'": "write a valid value as yyyy-mm-dd",
    "tm = '10:00'": "write a valid value as hh:mm:ss",
    "dt = '2020-01-01 25:00:00'": "write a valid value",
    "tm = dt": "a time with a date",
    "dt + 1 > 0": "arithmetic with a date",
    "bin + 1 > 0": "arithmetic with text",
    "bin": "text as a condition",
    "dt AND 1": "a date as a condition",
    "id = 111111111111111111111111111111111111111": "more than 38 digits",
    "u - 1 > 0": "is negative",
    "-u = 1": "minus an UNSIGNED number",
    "y = 20": "write four digits",
    "d6 / 3 > 1": "the quotient has more digits",
    "wide * d > 1": "digits, Spark's DECIMAL supports 38",
    "id * 1234567890.00000001 > 0": "39 digits, Spark's DECIMAL supports 38",
    "wide = u": "u: 40 digits",
    "big = 1": "only tested for NULL",
    "j->>'$.a' = 'x'": "this operator or function is not supported",
    "j = 'x'": "only tested for NULL",
    "uni = 'a'": "Spark does not support the collation utf8mb4_unicode_ci",
    "old = 'a'": "the column's collation is unknown",
    "ai > 'a'": "the order of utf8mb4_0900_ai_ci",
    "ai BETWEEN 'a' AND 'b'": "the order of utf8mb4_0900_ai_ci",
    "ai LIKE 'é%'": "ASCII letters, digits and punctuation only",
    "cyr > 'a'": "the order of cp1251_bin",
    "ai = bin": "different collations (utf8mb4_0900_ai_ci, utf8mb4_bin)",
    "bin COLLATE latin1_bin = 'a'": "a character set other than",
    "'a' = 'A'": "both sides are literals",
    "swe = 'ł'": "characters that the column's character set does not have",
    "e = '1'": "a member's index",
    "e = 1": "compares them by converting both",
    "id LIKE '1%'": "LIKE is not supported for an exact number",
    "bin LIKE ai": "the pattern is not a literal",
    "blob LIKE 'a%'": "LIKE is not supported for bytes",
    "LENGTH(swe) = 1": "length in bytes of latin1",
    "LENGTH(id) = 1": "for an exact number",
    "SUBSTRING(bin, id) = 'a'": "positions must be literal numbers",
    "SUBSTRING(bin, -1) = 'a'": "before the first character",
    "SUBSTRING(bin, 0) = 'a'": "before the first character",
    "CONCAT(bin, id) = 'a'": "for an exact number",
    "IF(id, bin, 1) = 'a'": "in one expression: MySQL converts them to text",
    "COALESCE(dt, '2020-01-01') = dt": "a date and text in one expression",
    "bin IN ('a', 1)": "text and numbers in one list",
    "CAST(bin AS SIGNED) = 1": "for text",
    "CAST(id AS CHAR) = '1'": "CAST is supported to SIGNED",
    "CAST(id AS UNSIGNED ARRAY) = 1": "CAST is supported to SIGNED",
    "BINARY bin = 'a'": "use COLLATE",
    "bin = _latin1'a'": "this operator or function is not supported",
    "bin = x'41'": "this operator or function is not supported",
    "YEAR(tm) = 1": "for a time",
    "HOUR(dt) = 1": "for a date",
    "g DIV 2 = 1": "DIV of floating-point numbers",
    "d DIV 2 = 1": "DIV of numbers that are not integers",
    "id DIV 1.5 = 1": "DIV of numbers that are not integers",
    "y = '2020'": "compares text and numbers as floating-point",
    "-y = 1": "minus an UNSIGNED number",
    "-bin = 1": "minus text",
    "TRIM(LEADING 'x' FROM bin) = 'a'": "is not supported",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_an_expression_that_spark_evaluates_differently_is_refused(expression):
    """The error names the expression, the part and the reason."""
    with pytest.raises(ConfigError) as caught:
        translated(expression)
    assert REFUSED[expression] in caught.value.message
    assert repr(expression) in caught.value.message


def test_division_depends_on_the_server():
    """MySQL compares nine digits of a quotient, MariaDB the four that it displays."""
    columns = {"column_sql": lambda column: column.name}
    assert "DECIMAL(29,9)" in translate("id / 3 > 1", TABLE, **columns)
    assert "DECIMAL(24,4)" in translate("id / 3 > 1", TABLE, **columns, flavor="mariadb")


def test_decimals_that_sparks_quotient_lacks_are_refused():
    """Spark's quotient has a decimal less for each decimal of the divisor."""
    sides = {"column_sql": lambda column: column.name, "flavor": "mariadb"}
    assert "DECIMAL(30,10)" in translate("d6 / d > 1", TABLE, **sides)
    with pytest.raises(ConfigError, match="the quotient has more digits than Spark supports"):
        translate("d6 / d6 > 1", TABLE, **sides)


def test_the_widest_number_is_rounded_down():
    """FLOOR() of 38 digits without decimals has no further digit, which Spark's DECIMAL would not support."""
    widest = TableSchema("shop", "t", (Column("n", "decimal", precision=38, scale=0),))
    assert "DECIMAL(38,0)" in translate("FLOOR(n) > 1", widest, lambda column: column.name)


def rule(**expressions):
    return ExpressionFilterRule.model_validate({"schema": "Shop", "table": "t", **expressions})


def condition(event, *rules, schema=TABLE):
    return left_out(rules, schema, event, before=lambda c: f"before.{c.name}", after=lambda c: f"after.{c.name}")


def test_a_rule_applies_to_one_kind_of_change():
    """Inserts are evaluated on the row after, deletes on the row before; other kinds and tables are not affected."""
    inserts, deletes = rule(**{"insert-value-expr": "id IS NULL"}), rule(**{"delete-value-expr": "id IS NULL"})
    assert condition("insert", inserts, deletes) == ("(coalesce((CAST(after.id AS DECIMAL(20,0)) IS NULL), FALSE))")
    assert condition("delete", inserts, deletes) == ("(coalesce((CAST(before.id AS DECIMAL(20,0)) IS NULL), FALSE))")
    assert condition("update", inserts, deletes) is None
    assert condition("insert", inserts, schema=TableSchema("shop", "u", TABLE.columns)) is None


def test_both_rows_of_an_update_must_match_a_rule():
    """The expressions for the old and the new row are combined with AND, the rules with OR."""
    both = rule(**{"update-old-value-expr": "dt IS NULL", "update-new-value-expr": "g IS NULL"})
    new = rule(**{"update-new-value-expr": "bin IS NULL"})
    assert condition("update", both, new) == (
        "(coalesce((before.dt IS NULL), FALSE) AND coalesce((CAST(after.g AS DOUBLE) IS NULL), FALSE))"
        " OR (coalesce((after.bin IS NULL), FALSE))"
    )


def test_conditions_are_those_that_servers_confirmed():
    """Of every expression in `tests/support/expressions.py`: the integration test compares their rows with servers'."""
    recorded = Path("tests/golden/rules/expressions.txt").read_text(encoding="ascii").splitlines()
    assert list(conditions()) == recorded
