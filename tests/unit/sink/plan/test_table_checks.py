"""Findings of `dmdelta check` for the target's tables."""

import pytest

from dmdelta.model.schema import Column, TableSchema
from dmdelta.sink.plan.table_checks import TargetTables, plan_table_checks

COLLATIONS = ("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "latin1_bin", "latin1_swedish_ci")


def table(*columns, key=("id",)):
    return TableSchema("shop", "t", (Column("id", "int", nullable=False), *columns), key)


def checks(source, held=None, required=(), *, tidb=False):
    tables = {held.name: held} if held is not None else {}
    return plan_table_checks([source], TargetTables(tables, {("shop", "t"): required}, COLLATIONS), tidb=tidb)


def raised(*args, **named):
    (found,) = checks(*args, **named)
    assert not found.passes
    return found


def text(name, kind="varchar", length=40, charset="utf8mb4", collation=None):
    return Column(name, kind, length=length, charset=charset, collation=collation)


def test_tables_that_fit_pass():
    """Equal tables, wider ones, names in other case, more columns, and tables that do not exist yet."""
    source = table(Column("n", "smallint", unsigned=True), text("v"), Column("j", "json"))
    wider = table(Column("N", "int"), text("v", length=80), text("j", "longtext", 0), Column("own", "int"))
    for held in (source, wider, None):
        (found,) = checks(source, held)
        assert (found.name, found.passes) == ("table_schema", True)


def test_a_column_that_the_target_lacks_stops():
    """The finding names the column."""
    found = raised(table(Column("n", "int"), Column("m", "int")), table(Column("n", "int")))
    assert (found.name, found.stops) == ("table_schema", True)
    assert "shop.t.m" in found.message
    assert "shop.t.n" not in found.message


def test_a_column_of_the_target_that_needs_a_value_stops():
    """A column that the source has always gets its value."""
    source = table(Column("n", "int", nullable=False))
    found = raised(source, table(Column("n", "int"), Column("own", "int")), required=("ID", "n", "own"))
    assert found.stops
    assert found.message.endswith("no default: shop.t.own")


@pytest.mark.parametrize(
    ("column", "held"),
    [
        (text("c"), Column("c", "int")),
        (Column("c", "datetime"), Column("c", "date")),
        (Column("c", "int"), Column("c", "smallint")),
        (Column("c", "int"), Column("c", "bigint", unsigned=True)),
        (Column("c", "int", unsigned=True), Column("c", "int")),
        (text("c", length=40), text("c", length=36)),
        (text("c", length=30, charset="utf8mb3"), text("c", length=36)),
        (text("c", "longtext", 0), text("c", "text", 0)),
        (Column("c", "decimal", precision=10, scale=2), Column("c", "decimal", precision=10, scale=3)),
        (Column("c", "datetime", precision=6), Column("c", "datetime", precision=3)),
        (Column("c", "enum", members=("a", "b")), Column("c", "enum", members=("a",))),
        (Column("c", "double"), Column("c", "float")),
        (Column("c", "bit", length=9), Column("c", "bit", length=8)),
    ],
)
def test_a_column_that_does_not_hold_every_value_is_a_warning(column, held):
    """The values that occur may fit: strict mode refuses one that does not."""
    found = raised(table(column), table(held))
    assert (found.name, found.stops) == ("column_type", False)
    assert "shop.t.c" in found.message


def test_a_character_set_that_lacks_characters_is_a_warning():
    """utf8mb4 holds those of every other."""
    found = raised(table(text("c", length=40)), table(text("c", length=10, charset="latin1")))
    assert (found.name, found.stops) == ("character_set", False)
    assert checks(table(text("c", length=10, charset="latin1")), table(text("c", length=40)))[0].passes


def test_collations_of_tables_that_will_be_created():
    """The source's, as the target names it, or the closest one, which is reported."""
    wanted = text("c", collation="utf8mb4_0900_ai_ci")
    found = raised(table(wanted, text("d", collation="utf8mb4_general_ci")))
    assert (found.name, found.stops) == ("collation", False)
    assert "utf8mb4_0900_ai_ci → utf8mb4_unicode_520_ci" in found.message
    assert "general" not in found.message
    assert checks(table(wanted), tidb=True)[0].passes


def test_a_type_that_tidb_lacks_stops():
    """This applies unless the table exists there with another type."""
    source = table(Column("g", "geometry"))
    found = raised(source, tidb=True)
    assert (found.name, found.stops) == ("table_schema", True)
    assert checks(source, table(Column("g", "longblob")), tidb=True)[0].passes
