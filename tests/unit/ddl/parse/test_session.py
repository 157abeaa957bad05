"""Statements without what they take from their session."""

import pytest

from dmdelta.ddl.parse.session import without_session
from dmdelta.ddl.parse.statements import statement_targets


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
    assert without_session(sql, "d") == sql


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
    assert without_session(sql, "d") == wanted
    assert statement_targets(wanted, "x") == statement_targets(sql, "d")
