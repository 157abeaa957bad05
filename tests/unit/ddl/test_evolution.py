"""What a statement does to a silver table."""

import pytest

from dmdelta.ddl.evolution import AddColumns, NoChange, Unsupported, plan_evolution, same_shape
from dmdelta.model.schema import Column, TableSchema

BEFORE = TableSchema(
    "db",
    "t",
    (Column("id", "int"), Column("v", "varchar", length=400, charset="utf8mb4"), Column("e", "enum", members=("a",))),
    ("id",),
)

ADDED = [
    ("c INT", "int", None),
    ("c INT UNSIGNED NOT NULL DEFAULT 5 COMMENT 'x, y'", "int", "CAST('5' AS BIGINT)"),
    ("c INT NOT NULL", "int", "CAST('0' AS INT)"),
    ("c INT DEFAULT -3", "int", "CAST('-3' AS INT)"),
    ("c DECIMAL(10,2) NOT NULL DEFAULT 1.50", "decimal", "CAST('1.50' AS DECIMAL(10,2))"),
    ("c DOUBLE PRECISION DEFAULT 1.5e-3", "double", "CAST('1.5E-3' AS DOUBLE)"),
    ("c VARCHAR(9) DEFAULT 'it''s'", "varchar", "'it\\'s'"),
    ("c VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL UNIQUE KEY", "varchar", "''"),
    ("c ENUM('x','y') NOT NULL", "enum", "'x'"),
    ("c BIT(8) DEFAULT b'101'", "bit", "CAST('5' AS BIGINT)"),
    ("c BOOL DEFAULT TRUE", "tinyint", "CAST('1' AS TINYINT)"),
    ("c DATE NOT NULL DEFAULT '0000-00-00'", "date", None),
    ("c DATETIME(3) DEFAULT '2020-01-01 00:00:00.123'", "datetime", "CAST('2020-01-01 00:00:00.123' AS TIMESTAMP_NTZ)"),
    ("c TIME(2) NOT NULL", "time", "'00:00:00.00'"),
    ("c BINARY(2) NOT NULL", "binary", "X'0000'"),
    ("c INT CHECK (c > 0) DEFAULT 7", "int", "CAST('7' AS INT)"),
    ("c JSON", "json", None),
    ("c POINT", "geometry", None),
    ("`key` INT", "int", None),
]


@pytest.mark.parametrize(("definition", "kind", "fill"), ADDED)
def test_added_column(definition, kind, fill):
    """ADD COLUMN gives the column's type and what the rows that are there hold in it."""
    plan = plan_evolution(BEFORE, f"ALTER TABLE t ADD COLUMN {definition}, ALGORITHM=INPLACE", None, "t")
    assert isinstance(plan, AddColumns)
    (added,) = plan.columns
    assert (added.column.type, added.fill.sql, added.fill.unknown) == (kind, fill, None)


@pytest.mark.parametrize(
    ("actions", "order"),
    [
        ("ADD a INT", ["id", "v", "e", "a"]),
        ("ADD a INT FIRST, ADD b INT AFTER id", ["a", "id", "b", "v", "e"]),
        ("ADD COLUMN (a INT, b INT, KEY k (a))", ["id", "v", "e", "a", "b"]),
        ("ADD a INT AFTER `ID`, ADD b INT AFTER a", ["id", "a", "b", "v", "e"]),
        ("ADD IF NOT EXISTS v INT, ADD a INT", ["id", "v", "e", "a"]),
    ],
)
def test_column_order(actions, order):
    """Columns stand where the statement puts them."""
    plan = plan_evolution(BEFORE, f"ALTER TABLE db.t {actions}", None, "t")
    assert isinstance(plan, AddColumns)
    assert [column.name for column in plan.schema.columns] == order


@pytest.mark.parametrize(
    "definition",
    [
        "c TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
        "c INT AS (id + 1) STORED",
        "c CHAR(36) DEFAULT (UUID())",
        "c INT AUTO_INCREMENT UNIQUE",
        "c TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00'",
        "c JSON NOT NULL",
    ],
)
def test_values_that_nobody_can_tell(definition):
    """A default that is no literal says so: it matters only where rows are."""
    plan = plan_evolution(BEFORE, f"ALTER TABLE t ADD {definition}", None, "t")
    assert isinstance(plan, AddColumns)
    assert plan.columns[0].fill.unknown


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD INDEX i (v), ENGINE=InnoDB",
        "ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (v) REFERENCES x (y), DROP FOREIGN KEY old",
        "ALTER TABLE t DROP INDEX i, RENAME KEY a TO b, COMMENT 'x'",
        "ALTER TABLE t AUTO_INCREMENT = 100, ROW_FORMAT=DYNAMIC",
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 4",
        "ALTER TABLE t ALTER COLUMN v SET DEFAULT 'x'",
        "ALTER TABLE t MODIFY v VARCHAR(200) COMMENT 'wider'",
        "ALTER TABLE t CHANGE e e ENUM('a','b') AFTER id",
        "CREATE INDEX i ON t (v)",
        "DROP INDEX i ON t",
        "CREATE TABLE t (id INT)",
        "ALTER DATABASE db COLLATE utf8mb4_bin",
    ],
)
def test_harmless(sql):
    """Indexes, comments, partitioning, wider text and more enum members change no value."""
    assert isinstance(plan_evolution(BEFORE, sql, None, "t"), NoChange)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t DROP COLUMN v",
        "ALTER TABLE t DROP v",
        "ALTER TABLE t RENAME COLUMN v TO w",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE t CHANGE v w VARCHAR(100)",
        "ALTER TABLE t MODIFY v VARCHAR(10)",
        "ALTER TABLE t MODIFY v VARCHAR(100) NOT NULL",
        "ALTER TABLE t MODIFY id BIGINT",
        "ALTER TABLE t MODIFY e ENUM('b','a')",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)",
        "ALTER TABLE t ADD c INT PRIMARY KEY",
        "ALTER TABLE t DROP PARTITION p0",
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
        "ALTER TABLE t ADD c UUID",
        "DROP INDEX `PRIMARY` ON t",
        "DROP TABLE t",
        "TRUNCATE TABLE t",
        "RENAME TABLE t TO u",
        "DROP DATABASE db",
        "CREATE OR REPLACE TABLE t (id INT)",
    ],
)
def test_unsupported(sql):
    """What would change values that are there is not followed, with a reason."""
    plan = plan_evolution(BEFORE, sql, None, "t")
    assert isinstance(plan, Unsupported)
    assert plan.reason


def test_the_log_is_believed():
    """The structure that the log tells behind the statement decides a column's type."""
    after = TableSchema("db", "t", (*BEFORE.columns, Column("c", "char", length=36)), ("id",))
    plan = plan_evolution(BEFORE, "ALTER TABLE t ADD c UUID", after, "t")
    assert isinstance(plan, AddColumns)
    assert plan.columns[0].column.type == "char"


def test_unknown_table():
    """Statements on a table that never had a row need nothing."""
    assert plan_evolution(None, "DROP TABLE IF EXISTS t", None, "t") == NoChange(None)


def test_shape():
    """Lengths, charsets and order do not count for silver; names, types and the key do."""
    same = TableSchema("db", "t", (*reversed(BEFORE.columns),), ("id",))
    assert same_shape(BEFORE, same)
    assert not same_shape(BEFORE, TableSchema("db", "t", BEFORE.columns, ()))
    assert not same_shape(BEFORE, TableSchema("db", "t", BEFORE.columns[:2], ("id",)))
