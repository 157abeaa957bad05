"""Shard merge: the planned commits for a statement on one shard, without a table."""

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, StoredColumn, TableSchema
from dmdelta.rules import Route, SourceRules
from dmdelta.sharding import Columns, joining
from dmdelta.silver.apply.shard_columns import ShardChange
from dmdelta.silver.apply.shard_merge import plan_leaving_out, plan_shard_change, seen_among
from dmdelta.silver.table.target import Target

AT = Position(1, "b.000001", 20)
T = TableSchema(
    "d", "t1", (Column("id", "int", nullable=False), Column("v", "int"), Column("w", "varchar", length=80)), ("id",)
)
THERE = Columns({"id": "INT", "v": "INT", "w": "STRING"})
CONTEXT = SourceContext(Lakehouse(root="/lake"), "task", "s1", "run", "mysql", SourceRules("s1"))
TARGET = Target(CONTEXT, ("d", "t1"), Route("d", "t", merged=True))
OWN = "WHERE _dm_shard = 's1-`d`.`t1`' AND _dm_version < named_struct('epoch', 1, 'seq', "


def change(actions, others=(T,), there=THERE):
    (effect,) = statement_effects(f"ALTER TABLE t1 {actions}", "d", lambda _: T)
    return ShardChange(TARGET, effect, there, others, AT)


def texts(plan):
    assert not plan.unknown
    return [found.text.partition(OWN)[0] for found in plan.changes]


def after(actions):
    return change(actions).altered.after


@pytest.mark.parametrize(
    ("actions", "alone", "among_others"),
    [
        ("ADD a INT AFTER id", ["ADD COLUMNS (`a` INT AFTER `id`)"], ["ADD COLUMNS (`a` INT AFTER `id`)"]),
        ("ADD a INT DEFAULT 5", ["ADD COLUMNS (`a` INT AFTER `w`)", "SET `a` = coalesce(`a`, CAST('5' AS INT)) "], None),
        ("DROP w", ["DROP COLUMNS (`w`)"], ["SET `w` = NULL "]),
        ("CHANGE w x VARCHAR(80)", ["RENAME COLUMN `w` TO `x`"],
         ["ADD COLUMNS (`x` STRING AFTER `v`)", "SET `x` = coalesce(`x`, `w`), `w` = NULL "]),
        ("MODIFY v BIGINT", ["ALTER COLUMN `v` TYPE BIGINT"], ["ALTER COLUMN `v` TYPE BIGINT"]),
    ],
)  # fmt: skip
def test_columns_of_other_shards_remain(actions, alone, among_others):
    """A statement changes the columns if no other shard has the old ones; otherwise only the shard's own rows."""
    done = after(actions)
    assert texts(plan_shard_change(change(actions, others=(done,)))) == alone
    assert texts(plan_shard_change(change(actions))) == (alone if among_others is None else among_others)


def test_the_second_shard_changes_its_own_rows():
    """If the columns exist already, the second shard's statement changes only its own rows."""
    there = Columns({**THERE.types, "a": "INT"})
    assert texts(plan_shard_change(change("ADD a INT", there=there))) == []
    assert texts(plan_shard_change(change("ADD a INT DEFAULT 5", there=there))) == [
        "SET `a` = coalesce(`a`, CAST('5' AS INT)) "
    ]


def test_a_matching_shard_joins_without_a_commit():
    """A shard with the merged table's columns and key needs no change."""
    assert plan_shard_change(ShardChange(TARGET, joining(T, THERE), THERE, (T,), AT)).changes == ()


def test_type_conversion():
    """All rows are rewritten once all shards have the type, or if it is a text that holds the others' values."""
    rewritten = plan_shard_change(change("MODIFY v VARCHAR(9)", others=(after("MODIFY v VARCHAR(9)"),)))
    assert rewritten.changes[0].text.startswith("`id`, CAST(")
    assert [found.text for found in rewritten.changes[1:]] == ["CLUSTER BY (`id`, `_dm_shard`)"]
    among_others = plan_shard_change(change("MODIFY v VARCHAR(9)")).changes[0].text
    assert ", CAST(left(CAST(`v` AS STRING), 9) AS STRING), CAST(CAST(`v` AS STRING) AS STRING)) " in among_others
    as_floats = change("MODIFY v VARCHAR(9)", (after("MODIFY v FLOAT"),), Columns({**THERE.types, "v": "FLOAT"}))
    assert "format a FLOAT or DOUBLE as text differently" in plan_shard_change(as_floats).unknown
    with pytest.raises(SchemaError, match="v becomes DATE, which does not hold the INT values"):
        plan_shard_change(change("MODIFY v DATE"))
    with pytest.raises(SchemaError, match="reuses the name w for another column"):
        plan_shard_change(change("DROP w, ADD w INT"))


def test_a_new_column_that_other_shards_have_with_another_type():
    """A text holds the others' values; a date does not, and the values of a shard of unknown structure are unknown."""
    there, others = Columns({**THERE.types, "a": "INT"}), (after("ADD a INT"), T)
    (rewritten, _) = plan_shard_change(change("ADD a VARCHAR(9)", others, there)).changes
    assert ", CAST(CAST(`a` AS STRING) AS STRING)) AS STRING) AS `a`" in rewritten.text  # and not 9 digits of it
    (filled, _) = plan_shard_change(change("ADD a VARCHAR(9) DEFAULT 'x'", others, there)).changes
    assert filled.text.count(" AND _dm_version < ") == 3
    for known in ((*others, None), (after("ADD a VARCHAR(9)"),)):
        with pytest.raises(SchemaError, match="a is DATE in the shard and INT in the merged table"):
            plan_shard_change(change("ADD a DATE", known, there))


def test_a_dropped_clustering_column():
    """The clustering ends before its column is dropped."""
    plan = plan_shard_change(change("DROP PRIMARY KEY, DROP id, ADD PRIMARY KEY (v)", others=()))
    first, _, *last = texts(plan)
    assert [first, *last] == ["CLUSTER BY NONE", "DROP COLUMNS (`id`)", "CLUSTER BY (`v`, `_dm_shard`)"]


def test_a_skipped_statement():
    """The table records the columns that it omits; a new type must fit nevertheless."""
    assert texts(plan_leaving_out(change("ADD a INT"))) == ["SET TBLPROPERTIES ('dmdelta.left-out' = 'a')"]
    assert texts(plan_leaving_out(change("DROP w"))) == ["SET `w` = NULL "]
    with pytest.raises(SchemaError, match="v becomes DATE, which INT cannot hold"):
        plan_leaving_out(change("MODIFY v DATE"))


def test_structure_in_the_merged_table():
    """A shard's structure has the merged table's wider types, lacks omitted columns, and has the shard in its key."""
    schema = TableSchema("d", "t1", (*T.columns, Column("x", "int")), ("id",))
    there = Columns({"id": "BIGINT", "v": "INT", "w": "STRING"}, frozenset({"x"}))
    seen = seen_among(TARGET, schema, there)
    assert [column.name for column in seen.columns] == ["id", "v", "w", "_dm_shard"]
    assert isinstance(seen.columns[0], StoredColumn)
    assert seen.primary_key == ("id", "_dm_shard")
    with pytest.raises(SchemaError, match="has no column x"):
        seen_among(TARGET, schema, THERE)
    assert len(seen_among(TARGET, schema, THERE, missing_too=True).columns) == 4
