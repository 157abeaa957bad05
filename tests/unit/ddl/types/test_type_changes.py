"""Where values stay the same, are converted, or cannot be determined, at the limits of the types."""

import re

import pytest

from dmdelta.ddl.type_changes import TypeChange
from dmdelta.ddl.types.conversion import ConversionKind, plan_conversion

SAME, WIDEN, REWRITE, STOP = ConversionKind


def plan(old, new, **keys):
    return plan_conversion(*TypeChange(old, new).columns, **keys)


KINDS = [
    ("TINYINT", "SMALLINT", WIDEN),
    ("TINYINT UNSIGNED", "SMALLINT", SAME),
    ("TINYINT UNSIGNED", "TINYINT", REWRITE),
    ("TINYINT", "SMALLINT UNSIGNED", REWRITE),
    ("SMALLINT UNSIGNED", "MEDIUMINT", SAME),
    ("MEDIUMINT UNSIGNED", "INT", SAME),
    ("INT UNSIGNED", "BIGINT", SAME),
    ("BIGINT UNSIGNED", "BIGINT", REWRITE),
    ("YEAR", "TINYINT UNSIGNED", REWRITE),
    ("YEAR", "SMALLINT", SAME),
    ("BIT(8)", "TINYINT UNSIGNED", REWRITE),
    ("BIT(63)", "BIGINT", SAME),
    ("BIT(64)", "BIGINT", REWRITE),
    ("BIT(64)", "BIGINT UNSIGNED", SAME),
    ("BIT(8)", "BIT(7)", REWRITE),
    ("BIT(8)", "BIT(8)", SAME),
    ("TINYINT UNSIGNED", "BIT(8)", WIDEN),
    ("TINYINT UNSIGNED", "BIT(7)", REWRITE),
    ("YEAR", "BIT(12)", WIDEN),
    ("YEAR", "BIT(11)", REWRITE),
    ("DECIMAL(5,2)", "BIT(8)", STOP),
    ("DOUBLE", "BIT(8)", STOP),
    ("YEAR", "YEAR", SAME),
    ("YEAR", "YEAR UNSIGNED", SAME),
    ("INT", "YEAR", REWRITE),
    ("DECIMAL(5,2)", "YEAR", STOP),
    ("FLOAT", "YEAR", STOP),
    ("INT", "DECIMAL(10,0)", WIDEN),
    ("INT", "DECIMAL(9,0)", REWRITE),
    ("INT", "DECIMAL(10,0) UNSIGNED", REWRITE),
    ("SMALLINT UNSIGNED", "DECIMAL(5,0)", REWRITE),
    ("YEAR", "DECIMAL(4,0) UNSIGNED", REWRITE),
    ("DECIMAL(5,2)", "DECIMAL(5,2)", SAME),
    ("DECIMAL(5,2)", "DECIMAL(6,2)", WIDEN),
    ("DECIMAL(5,2)", "DECIMAL(6,3)", WIDEN),
    ("DECIMAL(5,2)", "DECIMAL(5,3)", REWRITE),
    ("DECIMAL(5,2)", "DECIMAL(6,1)", REWRITE),
    ("DECIMAL(5,2)", "DECIMAL(6,2) UNSIGNED", REWRITE),
    ("DECIMAL(5,2) UNSIGNED", "DECIMAL(6,2) UNSIGNED", WIDEN),
    ("DECIMAL(5,2) UNSIGNED", "DECIMAL(6,2)", WIDEN),
    ("DECIMAL(38,2)", "DECIMAL(39,2)", STOP),
    ("DECIMAL(39,2)", "DECIMAL(38,2)", STOP),
    ("DECIMAL(39,2)", "DECIMAL(39,2)", SAME),
    ("DECIMAL(39,2)", "DECIMAL(40,2)", SAME),
    ("DECIMAL(40,2) UNSIGNED", "DECIMAL(40,2)", SAME),
    ("DECIMAL(40,2)", "DECIMAL(40,2) UNSIGNED", STOP),
    ("DECIMAL(40,2)", "DECIMAL(39,2)", STOP),
    ("DECIMAL(39,2)", "DECIMAL(40,3)", STOP),
    ("DECIMAL(40,2)", "DECIMAL(39,1)", STOP),
    ("DECIMAL(39,2)", "DOUBLE", STOP),
    ("DECIMAL(39,2)", "VARCHAR(50)", STOP),
    ("INT", "DECIMAL(39,0)", STOP),
    ("DECIMAL(38,0)", "VARCHAR(50)", REWRITE),
    ("FLOAT", "DOUBLE", WIDEN),
    ("FLOAT", "FLOAT UNSIGNED", REWRITE),
    ("FLOAT UNSIGNED", "FLOAT", SAME),
    ("INT UNSIGNED", "DOUBLE UNSIGNED", REWRITE),
    ("INT UNSIGNED", "ENUM('a')", REWRITE),
    ("YEAR", "ENUM('a')", REWRITE),
    ("BIT(3)", "ENUM('a')", REWRITE),
    ("FLOAT", "ENUM('a')", STOP),
    ("DECIMAL(5,0)", "ENUM('a')", STOP),
    ("INT", "ENUM", STOP),
    ("INT", "SET('a')", STOP),
    ("INT", "DATE", STOP),
    ("INT", "BLOB", STOP),
    ("BIT(8)", "CHAR(3)", STOP),
    ("YEAR", "CHAR(4)", REWRITE),
    ("BIGINT UNSIGNED", "TEXT", STOP),
    ("VARCHAR(9)", "ENUM('a')", STOP),
    ("VARCHAR(9)", "SET('a')", STOP),
    ("VARCHAR(9)", "DATE", STOP),
    ("VARCHAR(9)", "BIT(8)", STOP),
    ("VARCHAR(9)", "DECIMAL(38,0)", REWRITE),
    ("VARCHAR(9)", "DECIMAL(39,0)", STOP),
    ("MEDIUMTEXT", "TEXT", STOP),
    ("TEXT", "TEXT", SAME),
    ("CHAR(9)", "CHAR(9)", SAME),
    ("CHAR(9)", "VARCHAR(9)", SAME),
    ("CHAR(9)", "CHAR(8)", REWRITE),
    ("VARCHAR(9)", "CHAR(9)", REWRITE),
    ("TEXT", "BLOB", REWRITE),
    ("TEXT", "TINYBLOB", STOP),
    ("TINYTEXT", "BLOB", REWRITE),
    ("VARCHAR(9)", "BINARY(3)", REWRITE),
    ("VARCHAR(9)", "BINARY(4)", STOP),
    ("VARCHAR(9)", "BINARY(16)", STOP),
    ("VARCHAR(9)", "VARBINARY(4)", REWRITE),
    ("VARBINARY(4)", "VARCHAR(9)", REWRITE),
    ("VARBINARY(16)", "VARCHAR(99)", REWRITE),
    ("VARCHAR(9) CHARACTER SET latin1", "BLOB", STOP),
    ("BLOB", "BLOB", SAME),
    ("BLOB", "MEDIUMBLOB", SAME),
    ("BLOB", "TINYBLOB", STOP),
    ("BLOB", "VARBINARY(9)", REWRITE),
    ("VARBINARY(9)", "VARBINARY(9)", SAME),
    ("VARBINARY(9)", "VARBINARY(8)", REWRITE),
    ("VARBINARY(9)", "BINARY(9)", REWRITE),
    ("BINARY(9)", "BINARY(9)", SAME),
    ("BINARY(9)", "BINARY(10)", REWRITE),
    ("BINARY(9)", "VARBINARY(9)", SAME),
    ("BINARY(9)", "BLOB", SAME),
    ("BLOB", "INT", STOP),
    ("BINARY(4)", "VARCHAR(9)", STOP),
    ("BINARY(16)", "VARCHAR(99)", STOP),
    ("BINARY(5)", "VARCHAR(9)", REWRITE),
    ("BLOB", "VARCHAR(9) CHARACTER SET latin1", STOP),
    ("MEDIUMBLOB", "TEXT", STOP),
    ("BLOB", "TEXT", REWRITE),
    ("ENUM('a','bcd')", "VARCHAR(3)", SAME),
    ("ENUM('a','bcd')", "VARCHAR(2)", REWRITE),
    ("ENUM('a','bcd')", "TINYTEXT", SAME),
    ("ENUM('a')", "DATE", STOP),
    ("ENUM('a')", "ENUM", STOP),
    ("ENUM", "VARCHAR(9)", STOP),
    ("ENUM('a')", "SET('a')", SAME),
    ("SET('a')", "TEXT", SAME),
    ("SET('a')", "SET('a','b')", SAME),
    ("SET('a','b')", "SET('a')", REWRITE),
    ("SET('a')", "SET('A')", STOP),
    ("SET('a')", "SET", STOP),
    ("SET", "SET('a')", STOP),
    ("SET('a')", "INT", STOP),
    ("SET('a')", "ENUM('a')", STOP),
    ("DATE", "DATE", SAME),
    ("DATE", "DATETIME", WIDEN),
    ("DATETIME", "DATE", REWRITE),
    ("DATETIME(3)", "DATETIME(3)", SAME),
    ("DATETIME(3)", "DATETIME(4)", SAME),
    ("DATETIME(3)", "DATETIME(2)", REWRITE),
    ("TIME(3)", "TIME(3)", SAME),
    ("TIME(3)", "TIME(4)", REWRITE),
    ("TIME(3)", "TIME(2)", REWRITE),
    ("TIME", "VARCHAR(9)", REWRITE),
    ("TIME", "INT", STOP),
    ("TIME", "DATE", STOP),
    ("DATE", "TIME", STOP),
    ("DATE", "VARCHAR(20)", STOP),
    ("TIMESTAMP", "VARCHAR(20)", STOP),
    ("TIMESTAMP", "DATE", STOP),
    ("DATE", "TIMESTAMP", STOP),
]


@pytest.mark.parametrize(("old", "new", "kind"), KINDS, ids=[f"{old}-{new}" for old, new, _ in KINDS])
def test_the_kind_of_a_change(old, new, kind):
    """It is an expression only where a value can be another one in the new type."""
    assert plan(old, new).kind is kind


@pytest.mark.parametrize(("old", "new"), [("HYPERLINK", "HYPERLINK"), ("HYPERLINK", "INT"), ("INT", "HYPERLINK")])
def test_a_type_that_is_not_known(old, new):
    """The reason names it."""
    assert (plan(old, new).kind, plan(old, new).reason) == (STOP, "the type hyperlink is unknown")


@pytest.mark.parametrize(
    ("old", "new", "limits"),
    [
        ("BIGINT", "TINYINT", ("-128", "127")),
        ("BIGINT", "SMALLINT UNSIGNED", ("0", "65535")),
        ("BIGINT", "MEDIUMINT", ("-8388608", "8388607")),
        ("BIGINT", "INT", ("-2147483648", "2147483647")),
        ("BIGINT UNSIGNED", "BIGINT", ("-9223372036854775808", "9223372036854775807")),
        ("DECIMAL(20,2)", "INT UNSIGNED", ("0", "4294967295")),
        ("DOUBLE", "BIGINT UNSIGNED", ("0", "9223372036854775807")),
        ("DOUBLE", "INT", ("-2147483648", "2147483647")),
        ("BIGINT", "DECIMAL(3,0)", ("-999", "999")),
        ("BIGINT", "DECIMAL(3,1) UNSIGNED", ("0", "99.9")),
        ("BIGINT", "DECIMAL(2,2)", ("-0.99", "0.99")),
        ("DOUBLE", "DECIMAL(4,1)", ("-999.9", "999.9")),
        ("BIT(9)", "BIT(3)", ("0", "7")),
        ("VARCHAR(9)", "TINYINT", ("-128", "127")),
        ("VARCHAR(9)", "TINYINT UNSIGNED", ("0", "255")),
    ],
)
def test_a_number_is_clamped_to_the_limits_of_its_type(old, new, limits):
    """As a server does whose session is not strict."""
    sql = plan(old, new).sql
    assert tuple(dict.fromkeys(re.findall(r"THEN CAST\('([^']+)' AS", sql))) == limits
    assert tuple(re.findall(r"[<>]= (-?[\d.]+) THEN", sql)) == limits


@pytest.mark.parametrize(
    ("old", "new", "sql"),
    [
        ("FLOAT", "FLOAT UNSIGNED", "IF({column} < 0, 0, CAST({column} AS FLOAT))"),
        ("INT", "DOUBLE UNSIGNED", "IF({column} < 0, 0, CAST({column} AS DOUBLE))"),
        ("SMALLINT", "BIT(3)", "CAST(IF({column} < 0, 7, IF({column} > 7, 7, {column})) AS BIGINT)"),
        ("TIME", "TIME(2)", "IF({column} LIKE '%:__', concat({column}, '.00'), {column})"),
        ("TIME(2)", "TIME(3)", "IF({column} LIKE '%.__', concat({column}, '0'), {column})"),
        ("TIME", "VARCHAR(3)", "left({column}, 3)"),
        ("TIME", "CHAR(3)", "rtrim(left({column}, 3))"),
        ("SET('a')", "VARCHAR(3)", "left({column}, 3)"),
        ("ENUM('a','b','c')", "SET('c')", "CASE WHEN {column} IN ('a', 'b') THEN '' ELSE {column} END"),
        ("ENUM('a')", "INT", "CAST(array_position(array('a'), {column}) AS INT)"),
        ("VARBINARY(9)", "BINARY(3)", "rpad({column}, 3, X'00')"),
        ("VARBINARY(9)", "VARBINARY(3)", "substring({column}, 1, 3)"),
    ],
)
def test_the_value_in_the_new_type(old, new, sql):
    assert plan(old, new).sql == sql


@pytest.mark.parametrize(
    ("digits", "unit"), [(0, "1"), (1, "0.1"), (2, "0.01"), (3, "0.001"), (4, "0.0001"), (5, "0.00001")]
)
def test_seconds_are_cut_to_the_digits_of_the_new_type(digits, unit):
    """MariaDB truncates; MySQL adds half of the last digit before."""
    mariadb = plan("DATETIME(6)", f"DATETIME({digits})", mariadb=True).sql
    mysql = plan("DATETIME(6)", f"DATETIME({digits})").sql
    assert f"% CAST('{unit}' AS DECIMAL(8,6))" in mariadb
    assert "INTERVAL" not in mariadb
    assert f"+ INTERVAL '0.{'0' * digits}5' SECOND" in mysql
    assert f"< TIMESTAMP_NTZ'9999-12-31 23:59:59.{'9' * digits}5'" in mysql


@pytest.mark.parametrize(("old", "rounds"), [("DATETIME(3)", True), ("DATETIME", False)])
def test_a_time_of_day_can_round_to_the_next_day(old, rounds):
    """With fractional seconds, and not in MariaDB."""
    assert ("INTERVAL" in plan(old, "DATE").sql) is rounds
    assert plan(old, "DATE", mariadb=True).sql == "CAST({column} AS DATE)"
