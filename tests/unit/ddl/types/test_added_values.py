"""The value of an added column in existing rows."""

import pytest

from dmdelta.ddl.parse.columns import parse_definition
from dmdelta.ddl.tokens import Cursor, tokenize
from dmdelta.ddl.types.added_values import Fill, implicit_fill, literal_fill
from dmdelta.model.schema import Column

UTF8 = Column("c", "varchar", length=80, charset="utf8mb4")
LATIN1 = Column("c", "varchar", length=20, charset="latin1")
LONG = Column("c", "decimal", precision=65, scale=3)
"""A decimal that silver has as text."""


def read(text):
    """The literal; dates, times and JSON are written without their quotes here."""
    is_bare = ":" in text or text.count("-") == 2 or text in ("x", "{}")
    clause = f"'{text}'" if is_bare and not text.startswith("'") else text
    definition = parse_definition(Cursor(tokenize(f"c INT DEFAULT {clause}")))
    assert definition.default is not None
    return definition.default


def a(kind, **more):
    return Column("c", kind, **more)


@pytest.mark.parametrize(
    ("column", "text", "sql"),
    [
        (a("varchar", length=20), "'0000-00-00'", "'0000-00-00'"),
        (a("varchar", length=20), "'x  '", "'x  '"),
        (a("char", length=20), "'x  '", "'x'"),
        (a("text"), "'it''s'", "'it\\'s'"),
        (UTF8, "x'41C3A9'", "'Aé'"),
        (UTF8, "b'1000001'", "'A'"),
        (UTF8, "x''", "''"),
        (LATIN1, "x'41'", "'A'"),
        (UTF8, "-5", "'-5'"),
        (UTF8, "+5", "'5'"),
        (UTF8, "1.50", "'1.50'"),
        (UTF8, ".5", "'0.5'"),
        (UTF8, "TRUE", "'1'"),
        (a("char", charset="latin1"), "x'4120'", "'A'"),
        (a("enum", members=("a", "b")), "'b'", "'b'"),
        (a("enum", members=("yes", "no")), "'YES '", "'yes'"),
        (a("enum", members=("2", "1")), "1", "'1'"),
        (a("enum", members=("a", "b"), charset="latin1"), "x'61'", "'a'"),
        (a("enum", members=("ä", "B")), "'ä'", "'ä'"),
        (a("set", members=("a", "b")), "'a,b'", "'a,b'"),
        (a("set", members=("a", "b", "c")), "'C,a,c'", "'a,c'"),
        (a("set", members=("a", "b")), "''", "''"),
        (a("varbinary", length=8), "x'00ff'", "X'00ff'"),
        (a("blob"), "x''", "X''"),
        (a("int"), "-7", "CAST('-7' AS INT)"),
        (a("int", unsigned=True), "+7", "CAST('+7' AS BIGINT)"),
        (a("int"), "'-7'", "CAST('-7' AS INT)"),
        (a("int"), "x'41'", "CAST('65' AS INT)"),
        (a("bit", length=4), "5", "CAST('5' AS BIGINT)"),
        (a("bit", length=4), "b'101'", "CAST('5' AS BIGINT)"),
        (a("year"), "1999", "CAST('1999' AS SMALLINT)"),
        (a("year"), "'1999'", "CAST('1999' AS SMALLINT)"),
        (a("year"), "70", "CAST('1970' AS SMALLINT)"),
        (a("year"), "69", "CAST('2069' AS SMALLINT)"),
        (a("year"), "x'46'", "CAST('1970' AS SMALLINT)"),
        (a("year"), "0", "CAST('0' AS SMALLINT)"),
        (a("year"), "'0'", "CAST('2000' AS SMALLINT)"),
        (a("year"), "'00'", "CAST('2000' AS SMALLINT)"),
        (a("year"), "'99'", "CAST('1999' AS SMALLINT)"),
        (a("year"), "'0000'", "CAST('0' AS SMALLINT)"),
        (a("decimal", precision=5, scale=2), "1.50", "CAST('1.50' AS DECIMAL(5,2))"),
        (a("double"), "-1e3", "CAST('-1e3' AS DOUBLE)"),
        (a("date"), "2026-11-25", "CAST('2026-11-25' AS DATE)"),
        (a("datetime"), "2026-11-25 14:10:00", "CAST('2026-11-25 14:10:00' AS TIMESTAMP_NTZ)"),
        (a("datetime", precision=3), "2026-11-25 14:10:00.125", "CAST('2026-11-25 14:10:00.125' AS TIMESTAMP_NTZ)"),
        (a("time"), "14:10:00", "'14:10:00'"),
        (a("time"), "-838:59:59", "'-838:59:59'"),
        (a("time", precision=3), "14:10:00.5", "'14:10:00.500'"),
        (a("time", precision=3), "14:10:00", "'14:10:00.000'"),
        (a("time"), "-00:00:00", "'00:00:00'"),
        (a("time", precision=1), "-00:00:00.1", "'-00:00:00.1'"),
        (a("time", precision=3), "14:10:00.125", "'14:10:00.125'"),
    ],
)
def test_a_literal_default(column, text, sql):
    """The value has the type of silver's column; texts are as the server returns them."""
    assert literal_fill(column, read(text)) == Fill(sql)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (a("date"), "0000-00-00"),
        (a("datetime"), "0000-00-00 00:00:00"),
        (a("datetime", precision=3), "0000-00-00 00:00:00.000"),
        (a("timestamp"), "0000-00-00 00:00:00"),
    ],
)
def test_a_zero_date_is_null(column, text):
    assert literal_fill(column, read(text)) == Fill()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (a("int"), "1.5"),
        (a("int"), "x"),
        (UTF8, "x'E9'"),
        (LATIN1, "x'E9'"),
        (a("varchar", charset="ucs2"), "x'4142'"),
        (a("varchar"), "x'41'"),
        (UTF8, "007"),
        (UTF8, "1e3"),
        (UTF8, "1."),
        (UTF8, "-0"),
        (a("enum", members=("a", "A")), "'a'"),
        (a("enum", members=("e",)), "'é'"),
        (a("enum", members=("a",)), "'b'"),
        (a("set", members=("a", "b")), "'a, b'"),
        (a("bit", length=4), "'5'"),
        (a("year"), "'+70'"),
        (a("year"), "170"),
        (a("time"), "010:00:00"),
        (a("date"), "20261125"),
        (a("binary", length=3), "x'41'"),
        (a("double"), "'0x1F'"),
        (LONG, "1.5"),
        (a("date"), "26-11-25"),
        (a("date"), "2026-11-25 14:10:00"),
        (a("datetime"), "2026-11-25"),
        (a("datetime", precision=2), "2026-11-25 14:10:00.125"),
        (a("timestamp"), "2026-11-25 14:10:00"),
        (a("time"), "14:10"),
        (a("time", precision=2), "14:10:00.125"),
        (a("binary", length=3), "x"),
        (a("json"), "{}"),
        (a("timestamp"), "14:10:00"),
        (a("varbinary", length=8), "14:10:00"),
        (a("vector", length=8), "14:10:00"),
    ],
)
def test_a_default_that_silver_cannot_know(column, text):
    """The server's value depends on its session, or is not tested."""
    assert literal_fill(column, read(text)) == Fill(unknown="silver cannot fill in the default of column c")


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        (a("int"), "CAST('0' AS INT)"),
        (a("bit", length=3), "CAST('0' AS BIGINT)"),
        (a("decimal", precision=5, scale=2), "CAST('0' AS DECIMAL(5,2))"),
        (LONG, "CAST('0.000' AS STRING)"),
        (a("decimal", precision=65), "CAST('0' AS STRING)"),
        (a("enum", members=("b", "a")), "'b'"),
        (a("set", members=("a",)), "''"),
        (a("varchar", length=3), "''"),
        (a("text"), "''"),
        (a("time"), "'00:00:00'"),
        (a("time", precision=2), "'00:00:00.00'"),
        (a("date"), None),
        (a("datetime", precision=2), None),
        (a("binary", length=2), "X'0000'"),
        (a("varbinary", length=2), "X''"),
        (a("blob"), "X''"),
    ],
)
def test_the_implicit_default_of_a_column_without_nulls(column, sql):
    """As MySQL documents it; a zero date is NULL in silver."""
    assert implicit_fill(column) == Fill(sql)


@pytest.mark.parametrize(("column", "reason"), [(a("enum"), "members are unknown"), (a("json"), "json column c")])
def test_an_implicit_default_that_is_unknown(column, reason):
    assert reason in (implicit_fill(column).unknown or "")
