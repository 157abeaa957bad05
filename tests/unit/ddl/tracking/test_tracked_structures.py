"""The structures of a source's tables, from statement to statement."""

import pytest

from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.statement import LoggedStatement

ID, V = Column("id", "int", nullable=False), Column("v", "char", length=3, charset="latin1", collation="latin1_bin")
T = TrackedTable(TableSchema("db", "t", (ID, V), ("id",)), "latin1", Origin.SNAPSHOT)
U = TrackedTable(TableSchema("db", "u", (ID,)), "latin1", Origin.SNAPSHOT)
W = TrackedTable(TableSchema("other", "w", (ID,)), "latin1", Origin.SNAPSHOT)
KNOWN = Structures({each.schema.name: each for each in (T, U, W)}, {"db": "utf8mb3", "other": "latin1"})


def after(sql, known=KNOWN, **keys):
    return known.after(LoggedStatement(Position(1, "b.000001", 4), "db", sql, "utf8mb4"), **keys)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("DROP TABLE t, other.w", ["db.u"]),
        ("DROP DATABASE db", ["other.w"]),
        ("RENAME TABLE t TO new", ["db.new", "db.u", "other.w"]),
        ("RENAME TABLE t TO other.w", ["db.u", "other.w"]),
        ("RENAME TABLE unknown TO u", ["db.t", "other.w"]),
        ("ALTER TABLE t RENAME other.t", ["db.u", "other.t", "other.w"]),
        ("ALTER TABLE t FROBNICATE", ["db.u", "other.w"]),
        ("CREATE TABLE n (a INT)", ["db.n", "db.t", "db.u", "other.w"]),
        ("CREATE TABLE t AS SELECT 1", ["db.u", "other.w"]),
        ("ALTER TABLE unknown ADD a INT", ["db.t", "db.u", "other.w"]),
        ("TRUNCATE t", ["db.t", "db.u", "other.w"]),
    ],
)
def test_the_known_tables(sql, tables):
    """A table whose structure a statement does not determine is not among them."""
    found = after(sql)
    assert sorted(".".join(name) for name in found.tables) == tables
    assert all(tracked.schema.name == name for name, tracked in found.tables.items())


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE t",
        "ALTER TABLE t ENGINE=InnoDB",
        "ALTER TABLE t CHARSET latin1",
        "CREATE TABLE IF NOT EXISTS t (z INT)",
        "CREATE DATABASE IF NOT EXISTS db CHARSET latin1",
        "ALTER DATABASE db READ ONLY = 1",
        "BEGIN",
    ],
)
def test_a_statement_that_changes_no_structure(sql):
    assert after(sql) is KNOWN


def test_a_renamed_table_keeps_its_structure():
    """It is derived from a statement."""
    moved = after("RENAME TABLE t TO other.new").tables["other", "new"]
    assert (moved.schema.columns, moved.charset, moved.origin) == (T.schema.columns, "latin1", Origin.DDL)


@pytest.mark.parametrize(
    ("sql", "charset", "column"),
    [
        ("ALTER TABLE t CHARSET utf8mb4", "utf8mb4", ("latin1", 3, "latin1_bin")),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "utf8mb4", ("utf8mb4", 12, None)),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", "latin1", ("latin1", 3, None)),
        ("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", "utf8mb3", ("utf8mb3", 9, None)),
        ("ALTER TABLE t ADD w INT", "latin1", ("latin1", 3, "latin1_bin")),
    ],
)
def test_the_default_character_set_of_a_table(sql, charset, column):
    """Only a conversion changes the columns, and makes their collations unknown."""
    tracked = after(sql).tables["db", "t"]
    text = tracked.schema.columns[1]
    assert (tracked.charset, (text.charset, text.length, text.collation)) == (charset, column)
    assert tracked.origin is Origin.DDL


@pytest.mark.parametrize(
    ("sql", "charsets"),
    [
        ("CREATE DATABASE n CHARSET latin1", {"n": "latin1"}),
        ("CREATE DATABASE n", {"n": "utf8mb4"}),
        ("CREATE DATABASE IF NOT EXISTS n CHARSET latin1", {}),
        ("ALTER DATABASE n CHARSET latin1", {"n": "latin1"}),
        ("ALTER DATABASE n READ ONLY = 1", {}),
        ("ALTER DATABASE CHARSET latin1", {"db": "latin1"}),
    ],
)
def test_the_default_character_set_of_a_database(sql, charsets):
    """That of the server if a new database has none of its own."""
    assert after(sql).charsets == {**KNOWN.charsets, **charsets}


def test_a_dropped_database_has_no_character_set():
    assert after("DROP DATABASE db").charsets == {"other": "latin1"}


@pytest.mark.parametrize(
    ("table", "charset"), [(None, "utf8mb3"), ("t", "latin1"), ("unknown", None)], ids=["database", "table", "unknown"]
)
def test_character_sets_by_name(table, charset):
    assert KNOWN.charset_of("db", table) == charset
    assert KNOWN.charset_of("unknown", None) is None


@pytest.mark.parametrize(("keys", "kind"), [({}, "json"), ({"mariadb": True}, "longtext")])
@pytest.mark.parametrize("sql", ["ALTER TABLE t ADD j JSON", "CREATE OR REPLACE TABLE t (j JSON)"])
def test_json_is_text_in_mariadb_only(sql, keys, kind):
    assert after(sql, **keys).tables["db", "t"].schema.columns[-1].type == kind


def test_the_origin_of_a_structure_is_a_statement_by_default():
    assert (TrackedTable(T.schema).origin, TrackedTable(T.schema).charset) == (Origin.DDL, None)
    assert Structures() == Structures({}, {})
