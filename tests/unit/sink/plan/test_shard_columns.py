"""What a shard's statement still has to change in the target's merged table."""

from dataclasses import replace

import pytest

from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.schema import Column, TableSchema
from dmdelta.sharding import Columns, Operation, Verb, operations
from dmdelta.sink.plan.shard_columns import (
    changes_columns,
    columns_after,
    comparable,
    holds_all,
    merged_columns_of,
    plan_shard_ddl,
    target_type,
    target_types,
)

SHARD = TableSchema(
    "d",
    "t",
    (
        Column("id", "int", nullable=False),
        Column("v", "int"),
        Column("w", "varchar", length=160, charset="utf8mb4"),
    ),
    ("id",),
)
MERGED = Columns({"id": "REQUIREDINT", "v": "INT", "w": "TEXT"})


def altered(statement, schema=SHARD):
    """The effect of a statement on a shard, in the form that the sink compares."""
    (effect,) = statement_effects(statement, "d", lambda _: schema, mariadb=False)
    return comparable(effect)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("c", "varchar", length=40), "TEXT"),
        (Column("c", "longtext"), "TEXT"),
        (Column("c", "int", nullable=False), "REQUIREDINT"),
        (Column("c", "bigint", unsigned=True), "UNSIGNEDBIGINT"),
        (Column("c", "decimal", precision=9, scale=2), "DECIMAL(9,2)"),
        (Column("c", "enum", members=("a", "b")), "ENUM(A,B)"),
        (Column("c", "varbinary", length=9), "BYTES"),
        (Column("c", "datetime", precision=6), "DATETIME(0,6)"),
    ],
)
def test_types(column, expected):
    """The source's types; all texts are one type, and all bytes are one type."""
    assert target_type(column) == expected


@pytest.mark.parametrize(
    ("statement", "agree"),
    [
        ("ALTER TABLE t ADD a INT", True),
        ("ALTER TABLE t DROP w", True),
        ("ALTER TABLE t CHANGE w label VARCHAR(40)", True),
        ("ALTER TABLE t MODIFY v BIGINT", True),
        ("ALTER TABLE t MODIFY v INT NOT NULL", True),
        ("ALTER TABLE t MODIFY w VARCHAR(10)", True),
        ("ALTER TABLE t MODIFY w VARCHAR(200)", False),
        ("ALTER TABLE t MODIFY w TEXT", False),
    ],
)
def test_what_needs_agreement(statement, agree):
    """Columns, types and NOT NULL; a longer text does not."""
    assert changes_columns(altered(statement)) is agree


def test_the_first_executes_and_the_others_have_nothing_to_do():
    """Another shard's statement with the same effect has nothing left to do, whatever its text is."""
    text = "ALTER TABLE `m`.`t` ADD a INT, DROP w"
    change = altered("ALTER TABLE t ADD a INT, DROP w")
    first = plan_shard_ddl(change, MERGED, [text])
    assert first.texts == (text,)
    after = columns_after(MERGED, first.done)
    assert after.types == {"id": "REQUIREDINT", "v": "INT", "a": "INT"}
    other = altered("ALTER TABLE t DROP COLUMN w, ADD COLUMN a INT NULL AFTER v")
    assert (
        plan_shard_ddl(other, after, ["ALTER TABLE `m`.`t` DROP COLUMN w, ADD COLUMN a INT NULL AFTER v"]).texts == ()
    )


def test_a_part_that_is_left_is_executed_alone():
    """If another shard's statement has added one of two columns, the server would refuse the statement as a whole."""
    after = columns_after(MERGED, {Operation(Verb.ADD, "a", type="INT")})
    planned = plan_shard_ddl(
        altered("ALTER TABLE t ADD a INT, ADD b INT"), after, ["ALTER TABLE m ADD a INT, ADD b INT"]
    )
    assert planned.texts == ("ALTER TABLE m ADD a INT", "ALTER TABLE m ADD b INT")
    assert planned.done == {Operation(Verb.ADD, "b", type="INT")}


def test_a_column_that_others_have_is_kept():
    """A column is dropped with the last shard that has it."""
    change = altered("ALTER TABLE t DROP w, ADD a INT")
    planned = plan_shard_ddl(change, MERGED, ["ALTER TABLE m DROP COLUMN `w`, ADD a INT"], {"w"})
    assert planned.texts == ("ALTER TABLE m ADD a INT",)
    assert planned.done == {Operation(Verb.ADD, "a", type="INT")}


@pytest.mark.parametrize(
    ("action", "left"),
    [
        ("DROP w RESTRICT", []),
        ("DROP COLUMN IF EXISTS W", []),
        ("DROP\n/* why */ w CASCADE", []),
        ("DROP `my note`", []),
        ("DROP w, DROP INDEX w", ["DROP INDEX w"]),
        ("DROP w, DROP KEY IF EXISTS `w`", ["DROP KEY IF EXISTS `w`"]),
        ("DROP FOREIGN KEY w, DROP w", ["DROP FOREIGN KEY w"]),
        ("DROP w, DROP CONSTRAINT w", ["DROP CONSTRAINT w"]),
        ("DROP w, DROP INDEX `my note`", ["DROP INDEX `my note`"]),
    ],
)
def test_what_drops_a_column_that_others_have(action, left):
    """The column under any spelling, not an index or a constraint of its name."""
    shard = replace(SHARD, columns=(*SHARD.columns, Column("my note", "int")))
    merged = Columns({**MERGED.types, "my note": "INT"})
    change = altered(f"ALTER TABLE t {action}, ADD a INT", shard)
    planned = plan_shard_ddl(change, merged, [f"ALTER TABLE m {action}, ADD a INT"], {"w", "my note"})
    assert planned.texts == tuple(f"ALTER TABLE m {one}" for one in (*left, "ADD a INT"))
    assert planned.done == {Operation(Verb.ADD, "a", type="INT")}


def test_each_action_waits_for_its_lock_as_the_statement_does():
    """MariaDB's WAIT precedes the actions."""
    planned = plan_shard_ddl(
        altered("ALTER TABLE t WAIT 5 DROP w, ADD a INT"), MERGED, ["ALTER TABLE m WAIT 5 DROP w, ADD a INT"], {"w"}
    )
    assert planned.texts == ("ALTER TABLE m WAIT 5 ADD a INT",)


@pytest.mark.parametrize(
    ("statement", "waits"),
    [
        ("ALTER TABLE t ADD a INT, DROP w, MODIFY v BIGINT", set()),
        ("ALTER TABLE t ADD a INT NOT NULL DEFAULT 1", {Verb.ADD}),
        ("ALTER TABLE t CHANGE w label VARCHAR(40)", {Verb.RENAME}),
        ("ALTER TABLE t MODIFY v SMALLINT", {Verb.RETYPE}),
        ("ALTER TABLE t MODIFY v INT NOT NULL", {Verb.RETYPE}),
        ("ALTER TABLE t DROP id", {Verb.DROP}),
    ],
)
def test_what_waits_in_optimistic_mode(statement, waits):
    """Changes that the rows of the other shards would not fit: they are executed on the same columns."""
    required = operations(altered(statement), MERGED)
    assert {one.verb for one in required if not holds_all(one, MERGED)} == waits


def test_a_greater_type_for_a_column_that_another_shard_has_added():
    """Its ADD would be a duplicate: it becomes a MODIFY with the same clauses; in parentheses, only of the type."""
    after = columns_after(MERGED, {Operation(Verb.ADD, "a", type="INT")})
    change = altered("ALTER TABLE t ADD a BIGINT DEFAULT 5, ADD b INT")
    planned = plan_shard_ddl(change, after, ["ALTER TABLE m ADD COLUMN `a` BIGINT DEFAULT 5, ADD b INT"])
    assert planned.texts == ("ALTER TABLE m MODIFY COLUMN `a` BIGINT DEFAULT 5", "ALTER TABLE m ADD b INT")
    assert planned.retyped == set()
    listed = plan_shard_ddl(change, after, ["ALTER TABLE m ADD (a BIGINT DEFAULT 5, b INT)"])
    assert listed.retyped == {"a"}
    assert columns_after(after, planned.done).types["a"] == "BIGINT"


def test_a_name_that_begins_with_a_no_break_space():
    """To a server it is part of the name."""
    after = columns_after(MERGED, {Operation(Verb.ADD, "\u00a0a", type="INT")})
    text = "ALTER TABLE t ADD COLUMN \u00a0a BIGINT, ADD b INT"
    planned = plan_shard_ddl(altered(text), after, [text])
    assert planned.texts == ("ALTER TABLE t MODIFY COLUMN \u00a0a BIGINT", "ALTER TABLE t ADD b INT")


def test_rename_and_retype():
    """Both effects of a CHANGE, in either order of the set."""
    change = altered("ALTER TABLE t CHANGE v n BIGINT")
    done = operations(change, MERGED)
    assert columns_after(MERGED, done).types == {"id": "REQUIREDINT", "w": "TEXT", "n": "BIGINT"}


def test_the_targets_columns_after_a_restart():
    """Names are those of the target; types are those of a shard; a column of no shard is unknown."""
    found = merged_columns_of(["id", "V", "w", "own"], [target_types(SHARD)], None)
    assert found.types == {"id": "REQUIREDINT", "V": "INT", "w": "TEXT", "own": "UNKNOWN"}
    known = merged_columns_of(["id", "v"], [target_types(SHARD)], Columns({"v": "BIGINT"}))
    assert known.types == {"id": "REQUIREDINT", "v": "BIGINT"}


def test_a_crash_after_the_statement_finds_it_done_or_repeats_it():
    """RENAME and DROP have nothing left; ADD is repeated, which the target answers with 'duplicate column'."""
    before = [target_types(SHARD)]
    renamed = merged_columns_of(["id", "v", "label"], before, None)
    assert plan_shard_ddl(altered("ALTER TABLE t CHANGE w label VARCHAR(40)"), renamed, ["x"]).texts == ()
    dropped = merged_columns_of(["id", "v"], before, None)
    assert plan_shard_ddl(altered("ALTER TABLE t DROP w"), dropped, ["x"]).texts == ()
    added = merged_columns_of(["id", "v", "w", "a"], before, None)
    again = plan_shard_ddl(altered("ALTER TABLE t ADD a INT"), added, ["ALTER TABLE m ADD a INT"])
    assert (again.texts, again.retyped) == (("ALTER TABLE m ADD a INT",), frozenset())
