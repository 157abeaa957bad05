"""Which of MySQL's expressions are refused, and which changes a rule applies to; results are compared with servers
elsewhere."""

import pytest

from dmdelta.config import ExpressionFilterRule
from dmdelta.errors import ConfigError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules.expression_filter import left_out
from dmdelta.rules.expressions.translate import translate

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
    "id = (": "cannot be read",
    "id IN (SELECT 1)": "query is not translated",
    "NOW() > dt": "NOW(): not among",
    "RAND() < 0.5": "not among",
    "id & 1": "not among",
    "bin REGEXP 'a'": "not among",
    "UPPER(bin) = 'A'": "not among",
    "bin = 5": "compares them by turning both",
    "id = '5.5'": "text beside a number",
    "id = 'five'": "text beside a number",
    "d = '1.5'": "text beside a number",
    "dt = 20200101": "a date with an exact number",
    "dt = '2020-1-1'": "write it as yyyy-mm-dd",
    "dt = '2020-02-30'": "let it be one that there is",
    "dt = '0000-00-00'": "let it be one that there is",
    "dt = '10:00:00'": "write it as yyyy-mm-dd",
    "tm = '10:00'": "write it as hh:mm:ss",
    "tm = dt": "a time with a date",
    "dt + 1 > 0": "arithmetic with a date",
    "bin + 1 > 0": "arithmetic with text",
    "bin": "text as a condition",
    "dt AND 1": "a date as a condition",
    "u - 1 > 0": "below 0",
    "-u = 1": "minus an UNSIGNED number",
    "y = 20": "write four digits",
    "d6 / 3 > 1": "a quotient with more digits",
    "wide * d > 1": "digits, Spark's DECIMAL holds 38",
    "wide = u": "40 digits",
    "big = 1": "only tested for NULL",
    "j->>'$.a' = 'x'": "not among",
    "j = 'x'": "only tested for NULL",
    "uni = 'a'": "the collation utf8mb4_unicode_ci is not one that Spark compares by",
    "old = 'a'": "nobody told the column's collation",
    "ai > 'a'": "the order of utf8mb4_0900_ai_ci",
    "ai BETWEEN 'a' AND 'b'": "the order of utf8mb4_0900_ai_ci",
    "ai LIKE 'é%'": "ASCII letters, digits and signs only",
    "cyr > 'a'": "the order of cp1251_bin",
    "ai = bin": "different collations (utf8mb4_0900_ai_ci, utf8mb4_bin)",
    "bin COLLATE latin1_bin = 'a'": "another character set",
    "'a' = 'A'": "two literals",
    "swe = 'ł'": "characters that the column's character set does not have",
    "e = '1'": "a member's number",
    "e = 1": "compares them by turning both",
    "id LIKE '1%'": "LIKE of an exact number",
    "bin LIKE ai": "a pattern that is no literal",
    "blob LIKE 'a%'": "LIKE of bytes",
    "LENGTH(swe) = 1": "bytes in the character set latin1",
    "LENGTH(id) = 1": "of an exact number",
    "SUBSTRING(bin, id) = 'a'": "positions that are no literal numbers",
    "SUBSTRING(bin, -1) = 'a'": "before the first character",
    "SUBSTRING(bin, 0) = 'a'": "before the first character",
    "CONCAT(bin, id) = 'a'": "of an exact number",
    "IF(id, bin, 1) = 'a'": "in one place: MySQL turns them into text",
    "COALESCE(dt, '2020-01-01') = dt": "a date and text in one place",
    "bin IN ('a', 1)": "texts and numbers in one list",
    "CAST(bin AS SIGNED) = 1": "of text",
    "CAST(id AS CHAR) = '1'": "CAST is translated to SIGNED",
    "BINARY bin = 'a'": "use COLLATE",
    "bin = _latin1'a'": "not among",
    "bin = x'41'": "not among",
    "YEAR(tm) = 1": "of a time",
    "HOUR(dt) = 1": "of a date",
    "g DIV 2 = 1": "DIV of floating-point numbers",
    "TRIM(LEADING 'x' FROM bin) = 'a'": "is not translated",
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
