"""The effects of one DDL statement on tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.ddl.parse.actions import VERSIONING
from dmdelta.ddl.tracking.effects import Altered, Dropped, Moved, Renamed, Truncated, Unread
from dmdelta.ddl.tracking.log_override import LoggedStructure, settled
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.schema import Column, TableSchema

T = TableSchema(
    "db",
    "t",
    (
        Column("id", "int", nullable=False),
        Column("v", "varchar", length=400, charset="utf8mb4"),
        Column("x", "tinytext", charset="latin1"),
        Column("e", "enum", members=("a", "b"), charset="utf8mb4"),
    ),
    ("id",),
)
U = TableSchema("db", "u", (Column("k", "int"),))
KNOWN = {T.name: T, U.name: U}


def effects(sql, **kw):
    return statement_effects(sql, "db", KNOWN.get, **kw)


def altered(actions, verb="ALTER TABLE"):
    (effect,) = effects(f"{verb} t {actions}")
    assert isinstance(effect, Altered), effect
    return effect


COLUMNS = [
    ("ADD c INT", "id v x e +c"),
    ("ADD COLUMN (c INT, d INT, KEY k (c), UNIQUE (d))", "id v x e +c +d"),
    ("ADD c INT FIRST, ADD d INT AFTER c", "+c +d id v x e"),
    ("ADD c INT AFTER `ID`", "id +c v x e"),
    ("ADD COLUMN IF NOT EXISTS v INT, ADD c INT", "id v x e +c"),
    ("DROP v, DROP COLUMN IF EXISTS nope, DROP x", "id e"),
    ("DROP v, ADD v INT", "id x e +v"),
    ("RENAME COLUMN v TO w", "id v>w x e"),
    ("RENAME COLUMN v TO x, RENAME COLUMN x TO v", "id v>x x>v e"),
    ("CHANGE v w VARCHAR(5) AFTER e", "id x e v>w"),
    ("CHANGE v x INT, CHANGE COLUMN x v INT", "id v>x x>v e"),
    ("MODIFY V INT FIRST", "v>V id x e"),
    ("MODIFY IF EXISTS nope INT, MODIFY v INT", "id v x e"),
    ("ADD c INT AFTER w, CHANGE v w INT", "id v>w +c x e"),
    ("MODIFY e INT AFTER id, MODIFY v INT AFTER id", "id v e x"),
    ("MODIFY e INT FIRST, MODIFY x INT FIRST", "x e id v"),
    ("MODIFY e INT AFTER id, MODIFY x INT AFTER e", "id e x v"),
    ("ADD c INT FIRST, MODIFY v INT FIRST", "v +c id x e"),
    ("MODIFY x INT FIRST, ADD c INT AFTER x, ADD d INT", "x +c id v e +d"),
    ("WAIT 5 ADD c INT PARTITION BY KEY (id) PARTITIONS 3", "id v x e +c"),
    ("ADD `add` INT, ADD `primary` INT", "id v x e +add +primary"),
    ("ADD c INT, ADD INDEX (c), ADD CONSTRAINT FOREIGN KEY (c) REFERENCES u (k) ON DELETE SET DEFAULT", "id v x e +c"),
    ("ADD c INT REFERENCES u (k) ON UPDATE SET NULL, DEFAULT CHARSET latin1, LOCK=NONE", "id v x e +c"),
    ("ADD c INT AS (IF(v IS NOT NULL, 1, 0)) STORED", "id v x e +c"),
]


@pytest.mark.parametrize(("actions", "wanted"), COLUMNS, ids=[actions for actions, _ in COLUMNS])
def test_columns(actions, wanted):
    """Columns are added, dropped, moved and renamed together, with names from the structure before the statement."""
    effect = altered(actions)
    logged = [
        f"+{column.name}" if origin.was is None else "".join(dict.fromkeys([origin.was, f">{column.name}"]))
        for column, origin in zip(effect.after.columns, effect.origins, strict=True)
    ]
    short = [name.partition(">")[0] if name.partition(">")[0] == name.partition(">")[2] else name for name in logged]
    assert short == wanted.split()
    assert effect.before is T
    assert not effect.doubt


KEYS = [
    ("DROP PRIMARY KEY", (), ["id"]),
    ("DROP PRIMARY KEY, ADD PRIMARY KEY (v, e(1) DESC)", ("v", "e"), ["id", "v", "e"]),
    ("DROP CONSTRAINT `PRIMARY`, ADD CONSTRAINT pk PRIMARY KEY USING BTREE (V)", ("v",), ["id", "v"]),
    ("DROP id", (), []),
    ("DROP id, ADD id BIGINT", ("id",), ["id"]),
    ("CHANGE id no BIGINT", ("no",), ["no"]),
    ("RENAME COLUMN id TO no", ("no",), ["no"]),
    ("DROP PRIMARY KEY, ADD c INT AUTO_INCREMENT PRIMARY KEY", ("c",), ["id", "c"]),
    ("DROP PRIMARY KEY, MODIFY v VARCHAR(9) KEY", ("v",), ["id", "v"]),
    ("DROP INDEX `PRIMARY`", (), ["id"]),
]


@pytest.mark.parametrize(("actions", "key", "never_null"), KEYS)
def test_key(actions, key, never_null):
    """The primary key follows its columns, and its columns are never NULL."""
    after = altered(actions).after
    assert after.primary_key == key
    assert [column.name for column in after.columns if not column.nullable] == never_null


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD INDEX (v), DROP KEY k, RENAME INDEX a TO b, ADD UNIQUE u (v), DROP FOREIGN KEY f",
        "ALTER TABLE t DROP CHECK c, DROP CONSTRAINT IF EXISTS d, ADD CHECK (v > 0), ALTER CHECK c NOT ENFORCED",
        "ALTER TABLE t ALTER COLUMN v SET DEFAULT 'x', ALTER x DROP DEFAULT, ALTER INDEX i INVISIBLE",
        "ALTER TABLE t ENGINE=InnoDB COMMENT='ADD c INT' ROW_FORMAT=DYNAMIC, ALGORITHM=INPLACE, LOCK=NONE, FORCE",
        "ALTER TABLE t ORDER BY v, e DESC",
        "ALTER TABLE t DEFAULT CHARACTER SET = latin1 COLLATE latin1_bin",
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (5), PARTITION p2 VALUES LESS THAN (9))",
        "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (9))",
        "ALTER TABLE t COALESCE PARTITION 2",
        "ALTER TABLE t REBUILD PARTITION p0, p1",
        "ALTER TABLE t REMOVE PARTITIONING",
        "ALTER TABLE t PARTITION BY RANGE COLUMNS (id, v) (PARTITION p VALUES LESS THAN (1, 'a'))",
        "ALTER TABLE t MODIFY id INT NOT NULL AUTO_INCREMENT COMMENT 'PRIMARY, KEY', AUTO_INCREMENT = 9",
        "ALTER TABLE t MODIFY e ENUM('a ', 'b') CHARACTER SET utf8mb4",
        "ALTER TABLE t ENABLE KEYS",
        "ALTER TABLE t ENABLE KEYS, WITH VALIDATION",
        "ALTER ONLINE TABLE IF EXISTS t NOWAIT ADD INDEX IF NOT EXISTS (v)",
        "ALTER TABLE nowhere DROP x",
        "CREATE UNIQUE INDEX i ON t (v)",
        "DROP INDEX i ON t",
        "CREATE TABLE IF NOT EXISTS t (z INT)",
        "CREATE TEMPORARY TABLE t (z INT)",
        "DROP TEMPORARY TABLE t",
        "CREATE OR REPLACE VIEW t AS SELECT 1",
        "DROP DATABASE db",
        "ALTER DATABASE db COLLATE utf8mb4_bin",
        "ANALYZE TABLE t",
        "ALTER TABLE t RENAME TO t",
        "",
    ],
)
def test_nothing(sql):
    """A statement that changes neither columns nor key nor rows has no effect."""
    assert effects(sql) == ()


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t MODIFY id INT AUTO_INCREMENT",
        "ALTER TABLE t MODIFY id DOUBLE(20,2)",
        "ALTER TABLE t MODIFY v DOUBLE",
        "ALTER TABLE t MODIFY IF EXISTS w FLOAT(7,2)",
    ],
)
def test_values_that_are_known(sql):
    """A number without a fraction is not rounded, and a key is not NULL."""
    assert all(isinstance(effect, Altered) and not effect.doubt for effect in effects(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t DROP PARTITION p0, p1",
        "ALTER TABLE t TRUNCATE PARTITION p0",
        "ALTER TABLE t DISCARD PARTITION p0 TABLESPACE",
        "ALTER TABLE t ENGINE=BLACKHOLE",
        "ALTER IGNORE TABLE t ADD c INT, ADD UNIQUE (v)",
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        "ALTER TABLE t ADD a TIMESTAMP(6) GENERATED ALWAYS AS ROW START",
        "ALTER TABLE t DROP SYSTEM VERSIONING",
        "ALTER TABLE t MODIFY v DOUBLE(10,2)",
        "ALTER TABLE u MODIFY k INT AUTO_INCREMENT UNIQUE",
    ],
)
def test_doubt(sql):
    """If the remaining rows or their values are unknown, the effect says why."""
    (effect,) = effects(sql)
    assert isinstance(effect, Altered)
    assert effect.doubt


@pytest.mark.parametrize("action", ["ADD SYSTEM VERSIONING", "ADD a TIMESTAMP(6) AS ROW START"])
def test_versioning_of_an_unknown_table_is_refused(action):
    """Its log mixes rows and history, whatever its structure."""
    assert effects(f"ALTER TABLE w {action}") == (Unread(("db", "w"), VERSIONING, unsupported=True),)
    assert effects("ALTER TABLE w ADD a INT") == ()


@pytest.mark.parametrize(
    ("actions", "names"),
    [
        ("EXCHANGE PARTITION p0 WITH TABLE u WITHOUT VALIDATION", ["t", "t", "u"]),
        ("EXCHANGE PARTITION p0 WITH TABLE unknown", ["t", "t", "unknown"]),
        ("CONVERT PARTITION p0 TO TABLE new", ["t", "new"]),
        ("CONVERT TABLE u TO PARTITION p0 VALUES IN (1)", ["t", "t", "u"]),
        ("IMPORT TABLESPACE", ["t", "t"]),
        ("IMPORT PARTITION p0 TABLESPACE", ["t", "t"]),
    ],
)
def test_rows_that_the_log_does_not_contain(actions, names):
    """The altered table has a doubt; every table that may gain rows has unknown rows, even if it is unknown or empty."""
    one, *others = effects(f"ALTER TABLE t {actions}")
    assert isinstance(one, Altered)
    assert one.doubt
    assert others == [Moved(("db", name), one.doubt) for name in names[1:]]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t FROBNICATE v",
        "ALTER TABLE t ADD",
        "ALTER TABLE t ADD c",
        "ALTER TABLE t DROP nope",
        "ALTER TABLE t MODIFY nope INT",
        "ALTER TABLE t RENAME COLUMN nope TO x",
        "ALTER TABLE t ADD v INT",
        "ALTER TABLE t ADD c INT AFTER nope",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (nope)",
        "ALTER TABLE t CONVERT INTO SOMETHING",
    ],
)
def test_unread(sql):
    """Statements that are not understood or do not fit the structure are reported, not guessed."""
    (effect,) = effects(sql)
    assert isinstance(effect, Unread)
    assert effect.reason


def test_tables():
    """Tables are dropped, truncated and renamed in the statement's order."""
    assert effects("DROP TABLE IF EXISTS a, x.b RESTRICT") == (Dropped(("db", "a")), Dropped(("x", "b")))
    assert effects("TRUNCATE x.t") == (Truncated(("x", "t")),)
    assert effects("ALTER TABLE t TRUNCATE PARTITION ALL") == (Truncated(("db", "t")),)
    swap = [Renamed(("db", a), ("db", b)) for a, b in (("a", "tmp"), ("b", "a"), ("tmp", "b"))]
    assert effects("RENAME TABLE a TO tmp, b TO a, tmp TO b") == tuple(swap)
    assert effects("SET STATEMENT max_statement_time=1 FOR RENAME TABLE IF EXISTS a WAIT 5 TO c") == (
        Renamed(("db", "a"), ("db", "c")),
    )
    first, second = effects("ALTER TABLE t ADD c INT, RENAME AS x.y")
    assert isinstance(first, Altered)
    assert second == Renamed(T.name, ("x", "y"))
    assert effects("ALTER TABLE nowhere RENAME y") == (Renamed(("db", "nowhere"), ("db", "y")),)


def test_charset():
    """CONVERT TO changes the charset of text and enlarges its type; new columns take the statement's charset."""
    after = altered("CONVERT TO CHARACTER SET utf8mb3, ADD c CHAR(2), ADD d CHAR(2) CHARSET latin1").after
    logged = [(column.name, column.type, column.length, column.charset) for column in after.columns[1:]]
    assert logged == [
        ("v", "varchar", 300, "utf8mb3"),
        ("x", "text", 0, "utf8mb3"),
        ("e", "enum", 0, "utf8mb3"),
        ("c", "char", 6, "utf8mb3"),
        ("d", "char", 2, "latin1"),
    ]


def test_visibility():
    """A column that becomes invisible changes the structure."""
    assert [column.visible for column in altered("ALTER v SET INVISIBLE").after.columns] == [True, False, True, True]


def test_logged_types_override_the_statement():
    """The log determines charsets and types that the statement does not; other columns are unchanged."""
    effect = altered("ADD c VARCHAR(9), ADD d HYPERLINK, ADD f INT")
    logged = TableSchema(
        "db",
        "t",
        (
            Column("ID", "bigint"),
            Column("c", "varchar", length=36, charset="utf8mb4"),
            Column("d", "binary", length=16),
            Column("f", "bigint"),
        ),
    )
    after = settled(effect, LoggedStructure(logged)).after
    assert after.columns == (*T.columns, *logged.columns[1:3], Column("f", "int"))
    assert settled(effect, None) is effect


_WORDS = (
    "ALTER TABLE t ADD DROP MODIFY CHANGE COLUMN PRIMARY KEY ( ) , v id INT VARCHAR DEFAULT b'9' AFTER FIRST CREATE LIKE "
    "RENAME TO CONVERT CHARACTER SET COLLATE = PARTITION BY NOT NULL AS UNIQUE x'zz' ² . 1 -"
)


@given(st.lists(st.sampled_from(_WORDS.split()), max_size=14).map(" ".join), st.sampled_from(["", "ALTER TABLE t "]))
def test_never_raises(words, start):
    """Parsing raises no exception for any statement."""
    statement_effects(start + words, "db", KNOWN.get)


@pytest.mark.parametrize("index", ["v", "a", "z", "`primary_v`", "primaryv", "PRIMAR"])
def test_the_key_stays_if_another_index_is_dropped(index):
    """The sort order of the index names does not matter."""
    assert list(effects(f"DROP INDEX {index} ON t")) == []


@pytest.mark.parametrize("index", ["PRIMARY", "`PRIMARY`", "`primary`"])
def test_the_key_is_dropped_by_its_name(index):
    (effect,) = effects(f"DROP INDEX {index} ON t")
    assert isinstance(effect, Altered)
    assert effect.after.primary_key == ()


@pytest.mark.parametrize(
    ("options", "charset"),
    [
        ("", None),
        ("CHARSET=latin1", "latin1"),
        ("ENGINE=InnoDB CHARSET=latin1", "latin1"),
        ("ENGINE InnoDB DEFAULT CHARSET latin1", "latin1"),
        ("ENGINE=InnoDB, DEFAULT CHARACTER SET = latin1, ROW_FORMAT=DYNAMIC", "latin1"),
        ("COMMENT='CHARSET=utf8mb4' CHARSET=latin1", "latin1"),
        ("COMMENT='CHARSET=latin1'", None),
        ("UNION=(a, b) COLLATE=latin1_bin", "latin1"),
    ],
)
def test_the_default_charset_of_a_table(options, charset):
    """Among other options, with and without `=`."""
    (created,) = effects(f"CREATE TABLE fresh (c CHAR(3)) {options}")
    assert created.charset == charset
    assert created.schema.columns[0].charset == charset
