"""Statements without what they take from their session."""

import pytest

from dmdelta.ddl.parse.session import without_nulls, without_session
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.statement import Session

IN_D, EXPLICIT = Session("d"), Session("d", explicit_timestamps=True)


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLE t TO u",
        "RENAME /* x */ TABLE d.t TO `u`",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES x.u (a)",
        "CREATE TABLE t LIKE x.u",
        "SET STATEMENT a=1 FOR ALTER TABLE t ADD a INT",
        "DROP DATABASE x",
        "ALTER TABLE x.t ADD FOREIGN KEY (a) REFERENCES u (a)",
        "CREATE VIEW x.v AS SELECT * FROM t",
        "RENAME TABLE",
        "",
    ],
)
def test_a_statement_on_tables_of_the_default_schema_is_recorded_as_it_is(sql):
    """Also one that refers to tables of another schema, whose names are qualified or relative to its own table."""
    assert without_session(sql, IN_D) == sql


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("RENAME TABLE t TO x.t", "RENAME TABLE `d`.`t` TO x.t"),
        ("RENAME TABLE x.t TO t", "RENAME TABLE x.t TO `d`.`t`"),
        ("RENAME TABLE .t TO x.t", "RENAME TABLE `d`.`t` TO x.t"),
        ("ALTER TABLE t RENAME x . t", "ALTER TABLE `d`.`t` RENAME x . t"),
        ("ALTER TABLE x.t /* y */ RENAME TO t", "ALTER TABLE x.t /* y */ RENAME TO `d`.`t`"),
        (
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x.u",
            "ALTER TABLE `d`.`t` EXCHANGE PARTITION p WITH TABLE x.u",
        ),
        ("DROP TABLE a, x.b, `c``d`", "DROP TABLE `d`.`a`, x.b, `d`.`c``d`"),
        ("CREATE TABLE x.t LIKE u", "CREATE TABLE x.t LIKE `d`.`u`"),
        (
            "CREATE TABLE x.t (a INT, FOREIGN KEY (a) REFERENCES u (a))",
            "CREATE TABLE x.t (a INT, FOREIGN KEY (a) REFERENCES u (a))",
        ),
        ("SET STATEMENT a=1 FOR RENAME TABLE t TO x.t", "SET STATEMENT a=1 FOR RENAME TABLE `d`.`t` TO x.t"),
    ],
)
def test_names_without_a_schema_are_qualified(sql, wanted):
    """If a table is in another schema: then every table of the statement sees the same tables in it."""
    assert without_session(sql, IN_D) == wanted
    assert statement_targets(wanted, "x") == statement_targets(sql, "d")


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        ("ADD a TIMESTAMP", "ADD a TIMESTAMP NULL"),
        ("ADD a TIMESTAMP(6) COMMENT 'x' FIRST", "ADD a TIMESTAMP(6) NULL COMMENT 'x' FIRST"),
        ("ADD (a TIMESTAMP, b INT), ADD c TIMESTAMP", "ADD (a TIMESTAMP NULL, b INT), ADD c TIMESTAMP NULL"),
        ("MODIFY a TIMESTAMP, CHANGE b c TIMESTAMP", "MODIFY a TIMESTAMP NULL, CHANGE b c TIMESTAMP NULL"),
        ("ADD a TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "ADD a TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP"),
        ("ADD a TIMESTAMP DEFAULT NULL", "ADD a TIMESTAMP NULL DEFAULT NULL"),
        ("ADD a TIMESTAMP ON UPDATE NOW()", "ADD a TIMESTAMP NULL ON UPDATE NOW()"),
        ("ADD a TIMESTAMP NULL", "ADD a TIMESTAMP NULL"),
        ("ADD a TIMESTAMP DEFAULT 0 NOT NULL", "ADD a TIMESTAMP DEFAULT 0 NOT NULL"),
        ("ADD a TIMESTAMP PRIMARY KEY", "ADD a TIMESTAMP PRIMARY KEY"),
        ("ADD a TIMESTAMP, ADD PRIMARY KEY (id, A)", "ADD a TIMESTAMP, ADD PRIMARY KEY (id, A)"),
        ("ADD a TIMESTAMP AS (b)", "ADD a TIMESTAMP AS (b)"),
        ("ADD a TIMESTAMP(6) AS ROW START", "ADD a TIMESTAMP(6) AS ROW START"),
        ("ADD `timestamp` DATETIME, ADD INDEX (a)", "ADD `timestamp` DATETIME, ADD INDEX (a)"),
    ],
)
def test_explicit_defaults_for_timestamp(actions, wanted):
    """If it is ON, a TIMESTAMP without NULL and NOT NULL may be NULL; the text says so."""
    assert without_session(f"ALTER TABLE t {actions}", EXPLICIT) == f"ALTER TABLE t {wanted}"
    assert without_session(f"ALTER TABLE t {actions}", IN_D) == f"ALTER TABLE t {actions}"


def test_a_key_without_null():
    """The text does not name the columns of a key that the table has already."""
    sql = without_session("ALTER TABLE t MODIFY Ts TIMESTAMP(6), CHANGE a b TIMESTAMP, ADD `NULL` INT NULL", EXPLICIT)
    assert (
        without_nulls(sql, {"ts"})
        == "ALTER TABLE t MODIFY Ts TIMESTAMP(6), CHANGE a b TIMESTAMP NULL, ADD `NULL` INT NULL"
    )
    assert without_nulls(sql, {"id"}) == sql
    assert without_nulls("DROP TABLE t", {"id"}) == "DROP TABLE t"


def test_timestamps_and_names():
    """Both are replaced."""
    wanted = "ALTER TABLE `d`.`t` ADD a TIMESTAMP NULL, RENAME x.t"
    assert without_session("ALTER TABLE t ADD a TIMESTAMP, RENAME x.t", EXPLICIT) == wanted
    assert without_session("CREATE TABLE t (a TIMESTAMP)", EXPLICIT) == "CREATE TABLE t (a TIMESTAMP)"
