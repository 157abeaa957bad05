"""Decisions from the sums and hashes of both sides."""

from decimal import Decimal

from dmdelta.model.schema import Column, TableSchema
from dmdelta.quality.canonical import Sides
from dmdelta.quality.reconcile import (
    Kind,
    Suspects,
    add_sums,
    compared_rows,
    differing_rows,
    plan_comparison,
    plan_suspects,
    source_rows_query,
    source_sums_query,
    source_values_query,
)

ITEMS = TableSchema(
    "d",
    "items",
    (Column("id", "int"), Column("v", "varchar", length=20), Column("j", "json"), Column("f", "float")),
    ("id",),
)


def test_the_sums_of_parts_are_added_by_bucket():
    """Any number of parts, with buckets in any of them."""
    parts = [[(0, 1, Decimal(5)), (3, 2, Decimal(1 << 70))], [], [(3, 1, Decimal(2))]]
    assert add_sums(parts) == {0: (1, 5), 3: (3, (1 << 70) + 2)}


def test_differing_buckets_are_selected():
    """Buckets differ by count or by sum, on either side; the selection is limited by their number of rows."""
    source = {0: (1, 5), 1: (2, 7), 2: (1, 1)}
    silver = {0: (1, 5), 1: (2, 8), 3: (1, 1)}
    assert plan_suspects(source, silver) == Suspects((1, 2, 3))
    assert plan_suspects(source, silver, max_rows=2) == Suspects((1,), 2)
    assert plan_suspects(source, source) == Suspects(())


def test_how_rows_differ():
    """A duplicate row is an extra one; equal rows of a table without a key are counted."""
    source = [("1", 10), ("2", 20), ("3", 30), ("4", 40), ("4", 40)]
    silver = [("1", 10), ("2", 21), ("4", 40), ("5", 50), ("1", 10)]
    assert differing_rows(source, silver) == {
        "1": Kind.EXTRA,
        "2": Kind.DIFFERENT,
        "3": Kind.MISSING,
        "4": Kind.MISSING,
        "5": Kind.EXTRA,
    }
    assert differing_rows(source, reversed(source)) == {}


def test_compared_columns_and_key():
    """Columns that both sides have with a canonical text; without a primary key, all of them identify rows."""
    comparison = plan_comparison(ITEMS, ("id", "v", "j", "other"), "mysql", 5_000_000)
    assert [column.name for column in comparison.columns] == ["id", "v"]
    assert [column.name for column in comparison.key] == ["id"]
    assert comparison.buckets == 5_000
    keyless = plan_comparison(TableSchema("d", "t", ITEMS.columns), ("id", "v", "f"), "mysql", 10)
    assert [column.name for column in keyless.key] == ["id", "v", "f"]
    assert keyless.buckets == 16


def test_a_statement_with_arguments_doubles_its_percent_signs():
    """PyMySQL interprets them as placeholders."""
    day = TableSchema("d", "days", (Column("day", "date"),), ("day",))
    statement = source_values_query(plan_comparison(day, ("day",), "mysql", 1), "`d`.`days`", "", ["x", "y"])
    assert statement % ("'x'", "'y'") == statement.replace("%%", "%").replace("%s, %s", "'x', 'y'")


def test_rows_that_a_filter_excludes_are_not_compared():
    """Silver may have any row of such a key, or none; other rows of the source must exist in silver."""
    source = [("1", 10, 0), ("2", 20, 1), ("3", 30, 0), ("4", 40, 0), ("5", 50, 1)]
    silver = [("1", 10, 0), ("2", 99, 0), ("3", 31, 1), ("6", 60, 1), ("7", 70, 0)]
    compared = compared_rows(source, silver)
    assert compared.outdated == 1
    assert differing_rows(compared.source, compared.silver) == {"3": Kind.DIFFERENT, "4": Kind.MISSING, "7": Kind.EXTRA}


def test_a_filter_is_part_of_the_sources_sql():
    """Sums include only compared rows; for single rows the server returns whether they are excluded."""
    left_out = Sides("(v = 'x') IS TRUE", "v = 'x'")
    comparison = plan_comparison(ITEMS, ("id", "v"), "mysql", 1, left_out=left_out)
    assert "WHERE (id < 5) AND (NOT ((v = 'x') IS TRUE)) GROUP BY" in source_sums_query(comparison, "t", "id < 5")
    assert ", IF((v = 'x') IS TRUE, 1, 0) FROM t WHERE (id < 5) AND (CRC32(" in source_rows_query(
        comparison, "t", "id < 5", [1]
    )


def test_columns_of_other_shards_count_where_they_are_not_null():
    """Only silver's hash and values include them."""
    plain, merged = (plan_comparison(ITEMS, ("id", "v"), "mysql", 1, absent=absent) for absent in ((), ("of other",)))
    assert merged.hash.source == plain.hash.source
    assert "`of other` IS NOT NULL" in merged.hash.silver
    assert [name for name, _ in merged.values()] == ["id", "v", "of other"]
