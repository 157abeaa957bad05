"""The effect of a statement on a table that silver has, or has in part."""

import pytest

from dmdelta.ddl.tracking.effects import Altered, Renamed, Truncated, content_after
from dmdelta.ddl.tracking.log_override import LoggedStructure, settled
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.model.schema import Column, TableSchema

T = TableSchema("db", "t", (Column("a", "int"), Column("b", "int"), Column("c", "int")), ("a",))


def altered(actions):
    (effect,) = statement_effects(f"ALTER TABLE t {actions}", "db", {T.name: T}.get)
    assert isinstance(effect, Altered)
    return effect


@pytest.mark.parametrize(
    ("actions", "name"),
    [
        ("ADD d INT", None),
        ("DROP b", None),
        ("MODIFY b INT FIRST", None),
        ("MODIFY B BIGINT", None),
        ("RENAME COLUMN b TO d", None),
        ("DROP b, ADD b INT", "b"),
        ("DROP b, ADD B INT", "B"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "b"),
        ("DROP c, RENAME COLUMN a TO c", "c"),
    ],
)
def test_a_name_that_is_reused(actions, name):
    """It refers to another column than before, in any case."""
    assert altered(actions).reused_name == name


def test_a_change_among_some_of_the_columns():
    """New columns and those that were there before remain, with their origins and the doubt."""
    effect = altered("ADD d INT FIRST, RENAME COLUMN b TO e, DROP PARTITION p")
    some = effect.among(["b", "x"])
    assert [column.name for column in some.before.columns] == ["b"]
    assert [column.name for column in some.after.columns] == ["d", "e"]
    assert [origin.was for origin in some.origins] == [None, "b"]
    assert some.doubt == effect.doubt != ""
    assert effect.among(["a", "b", "c"]) == effect


def renamed(*pairs):
    return [Renamed(("d", one), ("d", other)) for one, other in pairs]


@pytest.mark.parametrize(
    ("effects", "content"),
    [
        ([], {}),
        ([Truncated(("d", "a"))], {}),
        (renamed(("a", "b")), {"b": "a"}),
        (renamed(("a", "x"), ("b", "a"), ("x", "b")), {"a": "b", "b": "a"}),
        ([*renamed(("a", "b")), Truncated(("d", "b")), *renamed(("b", "c"))], {"c": "a"}),
    ],
)
def test_the_table_that_a_name_refers_to_after_renames(effects, content):
    """Directly or in several steps."""
    assert content_after(effects) == {("d", name): ("d", was) for name, was in content.items()}


@pytest.mark.parametrize(
    ("definition", "logged", "wanted"),
    [
        ("d VARCHAR(9)", Column("D", "varchar", length=36, charset="utf8mb4"), "utf8mb4"),
        ("d VARCHAR(9)", Column("x", "varchar", length=36, charset="utf8mb4"), None),
        ("d VARCHAR(9)", Column("d", "text", charset="utf8mb4"), None),
        ("d JSON", Column("d", "longtext", charset="utf8mb4"), "utf8mb4"),
        ("d HYPERLINK", Column("d", "text", charset="utf8mb4"), "utf8mb4"),
    ],
)
def test_the_log_determines_the_type_of_a_new_column(definition, logged, wanted):
    """If it agrees with the statement; its name and visibility are the statement's."""
    effect = settled(
        altered(f"ADD {definition} NOT NULL INVISIBLE"), LoggedStructure(TableSchema("db", "t", (logged,)))
    )
    column = effect.after.columns[-1]
    assert (column.name, column.charset, column.nullable, column.visible) == ("d", wanted, False, False)


def test_the_log_determines_the_type_of_a_modified_column_only():
    """A column that only changed its name or position belongs to other statements."""
    logged = TableSchema("db", "t", tuple(Column(name, "int", unsigned=True) for name in ("a", "b", "d")))
    effect = settled(altered("RENAME COLUMN c TO d, MODIFY b INT INVISIBLE, DROP PRIMARY KEY"), LoggedStructure(logged))
    assert [column.unsigned for column in effect.after.columns] == [False, True, False]
