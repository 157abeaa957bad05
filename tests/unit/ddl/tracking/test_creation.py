"""The structures created by CREATE TABLE."""

import pytest

from dmdelta.ddl.parse.actions import LIKE_A_SEQUENCE, VERSIONING
from dmdelta.ddl.tracking.effects import Created, Dropped, Unread
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.schema import SEQUENCE_COLUMNS, Column, TableSchema

T = TableSchema(
    "db", "t", (Column("id", "int", nullable=False), Column("v", "varchar", length=400, charset="utf8mb4")), ("id",)
)
KNOWN = {T.name: T}


def effects(sql, **kw):
    return statement_effects(sql, "db", KNOWN.get, **kw)


def created(rest, **kw):
    (effect,) = effects(f"CREATE TABLE n {rest}", **kw)
    assert isinstance(effect, Created), effect
    return effect.schema


def test_create():
    """Columns of a new table have their types, its charset and its key."""
    schema = created(
        "(`a` SERIAL, b CHAR(3) NOT NULL, c VARCHAR(5) COLLATE latin1_bin, d TEXT(300), PRIMARY KEY (b, a DESC),"
        " KEY (c), CONSTRAINT fk FOREIGN KEY (c) REFERENCES t (v), f NUMERIC(5,2) UNSIGNED DEFAULT 1.5, g DATETIME(3),"
        " h BIT(9), i SET('x ','y,z'), j CHAR(2) CHARACTER SET binary, k INT INVISIBLE, l FLOAT(30), `key` BLOB(70000))"
        " ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin COMMENT='AS SELECT'"
    )
    assert schema == TableSchema(
        "db",
        "n",
        (
            Column("a", "bigint", unsigned=True, nullable=False),
            Column("b", "char", length=9, charset="utf8mb3", nullable=False),
            Column("c", "varchar", length=5, charset="latin1"),
            Column("d", "text", charset="utf8mb3"),
            Column("f", "decimal", unsigned=True, precision=5, scale=2),
            Column("g", "datetime", precision=3),
            Column("h", "bit", length=9),
            Column("i", "set", members=("x", "y,z"), charset="utf8mb3"),
            Column("j", "binary", length=2),
            Column("k", "int", visible=False),
            Column("l", "double"),
            Column("key", "mediumblob"),
        ),
        ("b", "a"),
    )


def test_create_without_key():
    """A unique index is not a primary key."""
    assert created("(a INT NOT NULL UNIQUE, b INT NOT NULL, UNIQUE KEY (b))").primary_key == ()
    assert created("(a INT PRIMARY KEY)").columns[0].nullable is False


def test_create_like_and_as_select():
    """LIKE copies a known structure; a query adds columns that the statement does not determine."""
    assert created("LIKE t") == created("(LIKE db.t)") == TableSchema("db", "n", T.columns, T.primary_key)
    unknown = ("LIKE w", "AS SELECT 1", "(a INT) SELECT 2 b", "SELECT * FROM t", "(SELECT 1 a)")
    assert [created(rest) for rest in unknown] == [None] * 5
    dropped, made = effects("CREATE OR REPLACE TABLE t (a INT)")
    assert dropped == Dropped(T.name)
    assert isinstance(made, Created)
    assert created("(j JSON)", mariadb=True).columns == (Column("j", "longtext", charset="utf8mb4"),)
    assert created("(a INT) START TRANSACTION").columns == (Column("a", "int"),)


@pytest.mark.parametrize(
    "rest",
    [
        "(a INT) WITH SYSTEM VERSIONING",
        "(a INT) ENGINE=InnoDB WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME",
        "(a INT) WITH SYSTEM VERSIONING CHARSET=utf8mb4 AS SELECT 1 b",
        "WITH SYSTEM VERSIONING AS SELECT 1 a",
        "(a INT, b INT WITH SYSTEM VERSIONING)",
        "(a INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, PERIOD FOR SYSTEM_TIME (s, e))",
    ],
)
def test_a_table_with_system_versioning_is_refused(rest):
    """Its log mixes rows and history."""
    assert effects(f"CREATE TABLE n {rest}", mariadb=True) == (Unread(("db", "n"), VERSIONING, unsupported=True),)


def test_a_sequence_has_its_columns():
    """To MariaDB's log it is a table; ALTER SEQUENCE changes only its numbers."""
    sql = "CREATE OR REPLACE SEQUENCE IF NOT EXISTS n START WITH 5 CACHE 10"
    dropped, made = effects(sql, mariadb=True)
    assert (dropped, made.table, made.schema.is_sequence) == (Dropped(("db", "n")), ("db", "n"), True)
    assert {(column.type, column.nullable) for column in made.schema.columns} == {("bigint", False), ("tinyint", False)}
    assert effects("ALTER SEQUENCE n RESTART 9", mariadb=True) == ()
    assert effects("DROP SEQUENCE IF EXISTS n, o", mariadb=True) == (Dropped(("db", "n")), Dropped(("db", "o")))


def test_a_sequence_may_have_a_type():
    """MariaDB 11.5 and later: its numbers have it, not the other columns."""
    (made,) = effects("CREATE SEQUENCE n START WITH 5 AS SMALLINT UNSIGNED CACHE 10", mariadb=True)
    types = [(column.type, column.unsigned) for column in made.schema.columns]
    assert types[:4] == [("smallint", True)] * 4
    assert types[4:] == [("bigint", False), ("bigint", True), ("tinyint", True), ("bigint", False)]


def test_a_table_with_the_columns_of_a_sequence_is_refused():
    """In MariaDB's log it looks like a sequence; other servers have none."""
    sql = f"CREATE TABLE n ({', '.join(f'{name} BIGINT' for name in SEQUENCE_COLUMNS)})"
    assert effects(sql, mariadb=True) == (Unread(("db", "n"), LIKE_A_SEQUENCE, unsupported=True),)
    assert isinstance(effects(sql)[0], Created)
