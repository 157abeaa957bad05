"""The default character sets that statements set."""

import pytest

from dmdelta.ddl.parse.actions import Add, Convert, DefaultCharset
from dmdelta.ddl.parse.defaults import altered_table, converts, database_charset


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE DATABASE x", ("CREATE", "x", None)),
        ("CREATE SCHEMA IF NOT EXISTS x CHARSET latin1", ("CREATE", "x", "latin1")),
        ("CREATE OR REPLACE DATABASE x CHARACTER SET = latin1", ("CREATE", "x", "latin1")),
        ("CREATE DATABASE x COMMENT 'c' DEFAULT COLLATE latin1_bin", ("CREATE", "x", "latin1")),
        ("CREATE DATABASE x CHARACTER SET latin1 COLLATE latin1_bin", ("CREATE", "x", "latin1")),
        ("CREATE DATABASE x COLLATE unknown_ci CHARSET latin1", ("CREATE", "x", "latin1")),
        ("CREATE DATABASE x COLLATE unknown_ci", ("CREATE", "x", None)),
        ("CREATE DATABASE `charset` CHARSET latin1", ("CREATE", "charset", "latin1")),
        ("CREATE DATABASE charset CHARSET latin1", ("CREATE", "charset", "latin1")),
        ("ALTER DATABASE x CHARSET utf8", ("ALTER", "x", "utf8mb3")),
        ("ALTER DATABASE x READ ONLY = 1", ("ALTER", "x", None)),
        ("ALTER DATABASE READ ONLY = 1", ("ALTER", "db", None)),
        ("ALTER DATABASE CHARACTER SET latin1", ("ALTER", "db", "latin1")),
        ("ALTER SCHEMA CHARSET latin1", ("ALTER", "db", "latin1")),
        ("ALTER DATABASE COLLATE latin1_bin", ("ALTER", "db", "latin1")),
        ("ALTER DATABASE DEFAULT CHARACTER SET latin1", ("ALTER", "db", "latin1")),
        ("ALTER DATABASE `default` CHARSET latin1", ("ALTER", "default", "latin1")),
        ("SET STATEMENT a=1 FOR ALTER DATABASE x CHARSET latin1", ("ALTER", "x", "latin1")),
        ("DROP DATABASE x", None),
        ("ALTER TABLE t CHARSET latin1", None),
        ("CREATE TABLE t (a INT) CHARSET latin1", None),
        ("CREATE DATABASE", None),
        ("", None),
    ],
)
def test_the_character_set_of_a_database(sql, wanted):
    """An ALTER without a name is of the session's database."""
    assert database_charset(sql, "db") == wanted


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("ALTER TABLE t CHARSET latin1", ("db", "t")),
        ("ALTER ONLINE IGNORE TABLE IF EXISTS x.t CHARSET latin1", ("x", "t")),
        ("ALTER DATABASE t CHARSET latin1", None),
        ("CREATE TABLE t (a INT) CHARSET latin1", None),
        ("ALTER TABLE", None),
        ("", None),
    ],
)
def test_the_table_of_an_alter(sql, wanted):
    """And the character set among its actions."""
    found = altered_table(sql, "db")
    assert found == (None if wanted is None else (wanted, (DefaultCharset("latin1"),)))


@pytest.mark.parametrize(("keys", "kind"), [({}, "json"), ({"mariadb": True}, "longtext")])
def test_json_is_text_in_mariadb_only(keys, kind):
    """In the columns that an ALTER adds."""
    _, (added,) = altered_table("ALTER TABLE t ADD j JSON", "db", **keys)
    assert isinstance(added, Add)
    assert added.definition.column.type == kind


def test_a_conversion_is_one_of_the_actions():
    """Another default does not convert the columns."""
    assert not converts([])
    assert not converts([DefaultCharset("latin1")])
    assert converts([DefaultCharset("latin1"), Convert(None)])
