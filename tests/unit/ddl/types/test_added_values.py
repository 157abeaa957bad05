"""The value of an added column in existing rows."""

import pytest

from dmdelta.ddl.types.added_values import Fill, implicit_fill, literal_fill
from dmdelta.model.schema import Column

LONG = Column("c", "decimal", precision=65, scale=3)
"""A decimal that silver has as text."""


def a(kind, **more):
    return Column("c", kind, **more)


@pytest.mark.parametrize(
    ("column", "text", "sql"),
    [
        (a("varchar", length=20), "0000-00-00", "'0000-00-00'"),
        (a("varchar", length=20), "x  ", "'x  '"),
        (a("char", length=20), "x  ", "'x'"),
        (a("text"), "it's", "'it\\'s'"),
        (a("enum", members=("a", "b")), "b", "'b'"),
        (a("set", members=("a", "b")), "a,b", "'a,b'"),
        (a("int"), "-7", "CAST('-7' AS INT)"),
        (a("int", unsigned=True), "+7", "CAST('+7' AS BIGINT)"),
        (a("bit", length=4), "5", "CAST('5' AS BIGINT)"),
        (a("year"), "1999", "CAST('1999' AS SMALLINT)"),
        (a("decimal", precision=5, scale=2), "1.50", "CAST('1.50' AS DECIMAL(5,2))"),
        (a("double"), "-1e3", "CAST('-1e3' AS DOUBLE)"),
        (a("date"), "2026-11-25", "CAST('2026-11-25' AS DATE)"),
        (a("datetime"), "2026-11-25 14:10:00", "CAST('2026-11-25 14:10:00' AS TIMESTAMP_NTZ)"),
        (a("datetime", precision=3), "2026-11-25 14:10:00.125", "CAST('2026-11-25 14:10:00.125' AS TIMESTAMP_NTZ)"),
        (a("time"), "14:10:00", "'14:10:00'"),
        (a("time"), "-838:59:59", "'-838:59:59'"),
        (a("time", precision=3), "14:10:00.5", "'14:10:00.500'"),
        (a("time", precision=3), "14:10:00", "'14:10:00.000'"),
        (a("time", precision=3), "14:10:00.125", "'14:10:00.125'"),
    ],
)
def test_a_literal_default(column, text, sql):
    """The value has the type of silver's column; texts are as the server returns them."""
    assert literal_fill(column, text) == Fill(sql)


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
    assert literal_fill(column, text) == Fill()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (a("int"), "1.5"),
        (a("int"), "x"),
        (a("bit", length=4), "b'101'"),
        (a("double"), "0x1F"),
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
    assert literal_fill(column, text) == Fill(unknown="silver cannot fill in the default of column c")


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
