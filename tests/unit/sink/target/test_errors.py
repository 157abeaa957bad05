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


def test_a_refused_statement():
    """The server's message about a statement of the log is complete: it quotes no row."""
    message = "You have an error in your SQL syntax; near 'INVISIBLE' at line 1"
    assert message in translated(pymysql.err.ProgrammingError(1064, message), "t").message
