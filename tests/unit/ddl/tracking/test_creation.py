"""The structures created by CREATE TABLE."""

from dmdelta.ddl.tracking.effects import Created, Dropped
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.schema import Column, TableSchema

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
    """LIKE copies a known structure; a query or versioning adds columns that the statement does not determine."""
    assert created("LIKE t") == created("(LIKE db.t)") == TableSchema("db", "n", T.columns, T.primary_key)
    unknown = ("LIKE w", "AS SELECT 1", "(a INT) SELECT 2 b", "SELECT * FROM t", "(SELECT 1 a)")
    assert [created(rest) for rest in (*unknown, "(a INT) WITH SYSTEM VERSIONING")] == [None] * 6
    dropped, made = effects("CREATE OR REPLACE TABLE t (a INT)")
    assert dropped == Dropped(T.name)
    assert isinstance(made, Created)
    assert created("(j JSON)", mariadb=True).columns == (Column("j", "longtext", charset="utf8mb4"),)
    assert created("(a INT) START TRANSACTION").columns == (Column("a", "int"),)
