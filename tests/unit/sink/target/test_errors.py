"""Errors of the target in a log: no value of a row."""

import pymysql
import pytest

from dmdelta.sink.target.connection import translated

MESSAGES = [
    (1526, "Table has no partition for value SECRET", "Table has no partition for value …"),
    (1062, "Duplicate entry 'SECRET-1' for key 't.PRIMARY'", "Duplicate entry … for key 't.PRIMARY'"),
    (1062, "Duplicate entry 'SECRET' for key 'x'-1' for key 'u'", "Duplicate entry … for key 'u'"),
    (
        1366,
        "Incorrect integer value: 'SECRET' for column 'n' at row 1",
        "Incorrect integer value: … for column 'n' at row 1",
    ),
    (
        1366,
        "Incorrect string value: '\\xF0SECRET' for column `d`.`t`.`c` at row 1",
        "Incorrect string value: … for column `d`.`t`.`c` at row 1",
    ),
    (
        3140,
        "Invalid JSON text: \"SECRET\" at position 0 in value for column 't.j'.",
        "Invalid JSON text: … for column 't.j'.",
    ),
    (
        1064,
        "You have an error in your SQL syntax; near 'SECRET' at line 1",
        "You have an error in your SQL syntax; near …",
    ),
    (1690, "BIGINT value is out of range in '(9 + SECRET)'", "BIGINT value is out of range in …"),
    (
        9007,
        "Write conflict, txnStartTS=4, key={tableID=1, handle=SECRET} primary=SECRET",
        "Write conflict, txnStartTS=4, …",
    ),
    (
        1264,
        "Out of range value for column 'c', the value is 'SECRET'",
        "Out of range value for column 'c', the value is …",
    ),
    (
        1265,
        "Data truncated for column 'c', value is 'SECRET for key 'u'-1'",
        "Data truncated for column 'c', value is …",
    ),
    (1265, "Data truncated for column 'c' at row 1", "Data truncated for column 'c' at row 1"),
    (1406, "Data too long for column 'c' at row 1", "Data too long for column 'c' at row 1"),
    (1364, "Field 'own' doesn't have a default value", "Field 'own' doesn't have a default value"),
    (
        1452,
        "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `f` FOREIGN KEY (`p`))",
        "Cannot add or update a child row: a foreign key constraint fails (`d`.`c`, CONSTRAINT `f` FOREIGN KEY (`p`))",
    ),
]


@pytest.mark.parametrize(("code", "message", "shown"), MESSAGES)
def test_a_refused_row(code, message, shown):
    """What the server quotes is left out, unless it is the name of a column, a key or a constraint."""
    error = translated(pymysql.err.DataError(code, message), "t", quotes_rows=True, position="1/b.000001:4")
    assert error.message.endswith(f": {shown}")
    assert "SECRET" not in str(error)


NAMED = [
    (1060, "Duplicate column name 'c'"),
    (1061, "Duplicate key name 'u'"),
    (1064, "You have an error in your SQL syntax; near 'INVISIBLE' at line 1"),
    (1067, "Invalid default value for 'c'"),
    (1091, "Can't DROP 'u'; check that column/key exists"),
    (1553, "Cannot drop index 'u': needed in a foreign key constraint"),
]


@pytest.mark.parametrize(("code", "message"), NAMED)
def test_a_refused_statement(code, message):
    """The server's message about a statement of the log is complete if it quotes names."""
    assert message in translated(pymysql.err.ProgrammingError(code, message), "t").message


@pytest.mark.parametrize(("code", "message", "shown"), [one for one in MESSAGES if one[0] not in (1064, 1452)])
def test_a_statement_that_the_rows_do_not_allow(code, message, shown):
    """ADD UNIQUE, MODIFY and the like: the statement has no value, but the server quotes one of a row."""
    assert translated(pymysql.err.DataError(code, message), "t").message.endswith(f": {shown}")
