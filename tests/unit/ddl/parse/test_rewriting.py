"""Statements with other names."""

import pytest

from dmdelta.ddl.parse.rewriting import Names, rewritten

NAMES = Names("d", lambda name: (f"to_{name[0]}", f"to_{name[1]}"), lambda name: f"to_{name}")
T, U = "`to_d`.`to_t`", "`to_d`.`to_u`"


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("DROP TABLE .t", f"DROP TABLE {T}"),
        ("DROP TABLE x . t", "DROP TABLE `to_x`.`to_t`"),
        ("DROP TABLE .t , x.u", f"DROP TABLE {T} , `to_x`.`to_u`"),
        ("DROP TABLES t, u RESTRICT", f"DROP TABLES {T}, {U} RESTRICT"),
        ("TRUNCATE TABLE t", f"TRUNCATE TABLE {T}"),
        ("RENAME TABLES t TO u", f"RENAME TABLES {T} TO {U}"),
        ("RENAME TABLE IF EXISTS t WAIT 5 TO u", f"RENAME TABLE IF EXISTS {T} WAIT 5 TO {U}"),
        ("CREATE OR REPLACE TABLE t (a INT)", f"CREATE OR REPLACE TABLE {T} (a INT)"),
        ("ALTER ONLINE IGNORE TABLE t ADD a INT", f"ALTER ONLINE IGNORE TABLE {T} ADD a INT"),
        ("ALTER TABLE IF EXISTS t ADD a INT", f"ALTER TABLE IF EXISTS {T} ADD a INT"),
        ("ALTER TABLE t RENAME u", f"ALTER TABLE {T} RENAME {U}"),
        ("ALTER TABLE t RENAME AS u", f"ALTER TABLE {T} RENAME AS {U}"),
        ("ALTER TABLE t RENAME = u", f"ALTER TABLE {T} RENAME = {U}"),
        ("ALTER TABLE t RENAME INDEX a TO b", f"ALTER TABLE {T} RENAME INDEX a TO b"),
        ("ALTER TABLE t RENAME KEY a TO b, RENAME u", f"ALTER TABLE {T} RENAME KEY a TO b, RENAME {U}"),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", f"ALTER TABLE {T} EXCHANGE PARTITION p WITH TABLE {U}"),
        (
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x.u WITHOUT VALIDATION",
            f"ALTER TABLE {T} EXCHANGE PARTITION p WITH TABLE `to_x`.`to_u` WITHOUT VALIDATION",
        ),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", f"ALTER TABLE {T} CONVERT PARTITION p TO TABLE {U}"),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p", f"ALTER TABLE {T} CONVERT TABLE {U} TO PARTITION p"),
        ("ALTER TABLE t WAIT 5 RENAME u", f"ALTER TABLE {T} WAIT 5 RENAME {U}"),
        ("ALTER TABLE t NOWAIT RENAME u", f"ALTER TABLE {T} NOWAIT RENAME {U}"),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (a)", f"ALTER TABLE {T} ADD FOREIGN KEY (a) REFERENCES {U} (a)"),
        ("ALTER TABLE t ADD a INT REFERENCES x.u (a)", f"ALTER TABLE {T} ADD a INT REFERENCES `to_x`.`to_u` (a)"),
        ("ALTER TABLE t ADD CHECK (a LIKE b)", f"ALTER TABLE {T} ADD CHECK (a LIKE b)"),
        ("CREATE TABLE t (a INT CHECK (a LIKE b))", f"CREATE TABLE {T} (a INT CHECK (a LIKE b))"),
        ("CREATE TABLE t (`RENAME` INT, RENAME INT)", f"CREATE TABLE {T} (`RENAME` INT, RENAME INT)"),
        ("CREATE INDEX i USING HASH ON x.t (a)", "CREATE INDEX i USING HASH ON `to_x`.`to_t` (a)"),
        ("DROP SCHEMA x", "DROP SCHEMA `to_x`"),
        ("ALTER DATABASE x CHARSET utf8mb4", "ALTER DATABASE `to_x` CHARSET utf8mb4"),
        ("ALTER DATABASE CHARACTER SET utf8mb4", "ALTER DATABASE `to_d` CHARACTER SET utf8mb4"),
        ("ALTER SCHEMA DEFAULT  COLLATE = x", "ALTER SCHEMA `to_d` DEFAULT  COLLATE = x"),
        ("ALTER DATABASE\tcharset utf8mb4", "ALTER DATABASE\t`to_d` charset utf8mb4"),
        ("ALTER DATABASE ENCRYPTION 'Y'", "ALTER DATABASE `to_d` ENCRYPTION 'Y'"),
        ("ALTER DATABASE READ ONLY = 1", "ALTER DATABASE `to_d` READ ONLY = 1"),
        ("ALTER DATABASE `read` READ ONLY = 1", "ALTER DATABASE `to_read` READ ONLY = 1"),
        ("DROP DATABASE charset", "DROP DATABASE `to_charset`"),
    ],
)  # fmt: skip
def test_names_are_replaced(sql, wanted):
    """Those of tables and databases in every kind of statement, but no other names."""
    assert rewritten(sql, NAMES) == wanted


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE TABLE t (a INT) START TRANSACTION", f"CREATE TABLE {T} (a INT)"),
        ("CREATE TABLE t (a INT)\n  start transaction ", f"CREATE TABLE {T} (a INT)"),
        ("ALTER TABLE t ADD start YEAR", f"ALTER TABLE {T} ADD start YEAR"),
        ("ALTER TABLE t ADD w YEAR", f"ALTER TABLE {T} ADD w YEAR"),
        ("SET STATEMENT a=1, b=2 FOR  DROP TABLE t", f"DROP TABLE {T}"),
        ("set statement a='FOR' for ALTER TABLE t ADD a INT", f"ALTER TABLE {T} ADD a INT"),
        ("SET STATEMENT a=1 FOR ALTER TABLE t ADD PERIOD FOR p (a, b)", f"ALTER TABLE {T} ADD PERIOD FOR p (a, b)"),
        ("ALTER TABLE t ADD PERIOD FOR SYSTEM_TIME (a, b)", f"ALTER TABLE {T} ADD PERIOD FOR SYSTEM_TIME (a, b)"),
    ],
)
def test_what_only_concerns_the_source_is_removed(sql, wanted):
    """The variables of one statement, and the transaction that rows follow in."""
    assert rewritten(sql, NAMES) == wanted


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "BEGIN",
        "SET STATEMENT a=1",
        "RENAME USER a TO b",
        "CREATE VIEW t AS SELECT 1",
        "DROP TABLE",
        "DROP TABLE (",
        "DROP TABLE .",
        "DROP TABLE x.",
        "DROP DATABASE",
        "TRUNCATE",
        "ALTER TABLE",
        "CREATE INDEX i",
    ],
)
def test_a_statement_without_names_is_unchanged(sql):
    """Also one that is incomplete."""
    assert rewritten(sql, NAMES) == sql


def test_a_name_in_backticks():
    """A backtick in a name is doubled."""
    assert rewritten("DROP TABLE `a``b`", Names("d", lambda name: name, str)) == "DROP TABLE `d`.`a``b`"
