"""Schema evolution: the planned commits, without a table."""

import pytest

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.lakehouse.changes import Verb
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.schema.evolution import clustering, plan_change, plan_creation, plan_drop, plan_renames

AT = Position(1, "b.000001", 20)
BEFORE = TableSchema(
    "db",
    "t",
    (
        Column("id", "int", nullable=False),
        Column("a", "varchar", length=80, charset="utf8mb4"),
        Column("b", "int"),
    ),
    ("id",),
)


def changes_of(actions):
    (effect,) = statement_effects(f"ALTER TABLE t {actions}", "db", lambda _: BEFORE)
    assert isinstance(effect, Altered)
    return plan_change(effect, AT)


@pytest.mark.parametrize(
    ("actions", "texts"),
    [
        ("ADD c INT", ["ADD COLUMNS (`c` INT AFTER `b`)"]),
        ("ADD c INT FIRST", ["ADD COLUMNS (`c` INT FIRST)"]),
        ("DROP a, DROP b", ["DROP COLUMNS (`a`, `b`)"]),
        ("CHANGE a title VARCHAR(80)", ["RENAME COLUMN `a` TO `title`"]),
        ("MODIFY b BIGINT", ["ALTER COLUMN `b` TYPE BIGINT"]),
        ("MODIFY b INT FIRST", ["ALTER COLUMN `b` FIRST"]),
        ("DROP PRIMARY KEY", ["CLUSTER BY NONE"]),
        ("CHANGE id number INT", ["RENAME COLUMN `id` TO `number`"]),
    ],
)
def test_changes_in_place(actions, texts):
    """Changes of names, column order, keys and widened types are metadata only."""
    plan = changes_of(actions)
    assert [(change.verb, change.text) for change in plan.changes] == [(Verb.ALTER, text) for text in texts]
    assert not plan.unknown


def test_column_default():
    """Existing rows get the default; rows of later events keep their values."""
    added, filled = changes_of("ADD c INT DEFAULT 7").changes
    assert added.verb is Verb.ALTER
    assert filled.verb is Verb.UPDATE
    assert filled.text.startswith("SET `c` = coalesce(`c`, CAST('7' AS INT)) WHERE _dm_version < ")


def test_type_conversion():
    """A type that Delta cannot widen to is one commit that rewrites every row, then the clustering."""
    rewrite, cluster = changes_of("MODIFY b VARCHAR(12), DROP a, ADD c INT DEFAULT 3").changes
    assert rewrite.verb is Verb.REWRITE
    assert "AS `b`" in rewrite.text
    assert "CAST(CAST('3' AS INT) AS INT) AS `c`" in rewrite.text
    assert "`a`" not in rewrite.text
    assert cluster.text == "CLUSTER BY (`id`)"


def test_primary_key_change():
    """NULLs in a new key column get the server's values before the table is clustered by it."""
    *first, update, cluster = changes_of("DROP id, ADD PRIMARY KEY (b)").changes
    assert [change.text for change in first] == ["CLUSTER BY NONE", "DROP COLUMNS (`id`)"]
    assert update.verb is Verb.UPDATE
    assert "NOT (`b` <=> " in update.text
    assert cluster.text == "CLUSTER BY (`b`)"


@pytest.mark.parametrize(
    "actions",
    ["ADD c TIMESTAMP DEFAULT NOW()", "ADD c INT AS (id) STORED", "ADD c INT AUTO_INCREMENT UNIQUE", "MODIFY b JSON"],
)
def test_unknown_values(actions):
    """The plan contains the reason why values are unknown; an empty table can still apply it."""
    plan = changes_of(actions)
    assert plan.unknown
    assert plan.changes


@pytest.mark.parametrize(
    ("renames", "steps"),
    [
        ({"a": "x"}, [("a", "x")]),
        ({"a": "b", "b": "x"}, [("b", "x"), ("a", "b")]),
        ({"a": "b", "b": "a"}, [("a", "_dm_renamed_0"), ("b", "a"), ("_dm_renamed_0", "b")]),
        ({"b": "a", "a": "b"}, [("b", "_dm_renamed_0"), ("a", "b"), ("_dm_renamed_0", "a")]),
        ({"a": "A"}, [("a", "_dm_renamed_0"), ("_dm_renamed_0", "A")]),
    ],
)
def test_renames(renames, steps):
    """A name is used once it is free; cycles use a temporary name."""
    assert plan_renames(renames, ["id", "a", "b"]) == steps


def test_drop_marks_the_table():
    """DROP TABLE deletes the rows and marks the table."""
    assert [change.verb for change in plan_drop(AT)] == [Verb.DELETE, Verb.ALTER]


def test_creation_over_an_existing_table():
    """The table is rewritten with the new columns, unless it has them already. It is clustered by the new key."""
    rewritten = plan_creation(BEFORE, AT, fits=False)
    assert [change.verb for change in rewritten] == [Verb.REWRITE, Verb.ALTER, Verb.ALTER]
    kept = plan_creation(BEFORE, AT, fits=True)
    assert [change.verb for change in kept] == [Verb.DELETE, Verb.ALTER, Verb.ALTER]
    assert rewritten[1:] == kept[1:]
    assert kept[1].text == "CLUSTER BY (`id`)"


def test_clustering_by_a_column_without_statistics():
    """A key column after the indexed columns gets statistics first."""
    columns = tuple(Column(f"c{number}", "int") for number in range(40))
    texts = [change.text for change in clustering(TableSchema("db", "t", columns, ("c35",)))]
    assert texts == ["SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '36')", "CLUSTER BY (`c35`)"]
