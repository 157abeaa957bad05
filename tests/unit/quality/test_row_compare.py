"""Which tables' rows are compared, and which of their columns."""

from dataclasses import replace

import pytest

from dmdelta.model.schema import Column, TableSchema
from dmdelta.quality.row_compare import RowLook, TableFacts, plan_look

COLUMNS = (Column("id", "int"), Column("v", "varchar", length=9), Column("j", "json"), Column("w", "vector"))
SCHEMA = TableSchema("d", "t", COLUMNS, ("id",))
FACTS = TableFacts(SCHEMA, ("id", "v", "j", "w", "_dm_version"))


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(FACTS, compared="a filter of the spec"), "a filter of the spec"),
        (replace(FACTS, schema=None), "the source has no such table"),
        (replace(FACTS, schema=replace(SCHEMA, primary_key=())), "the table has no key"),
        (replace(FACTS, columns=None), "silver has no such table"),
        (replace(FACTS, columns=("v", "j")), "its rows cannot be looked up by key"),
        (
            replace(FACTS, schema=replace(SCHEMA, columns=(Column("id", "float"), *COLUMNS[1:]))),
            "its rows cannot be looked up by key",
        ),
    ],
)
def test_a_table_that_is_not_compared_has_a_reason(facts, why):
    """No table is skipped silently."""
    assert plan_look(facts, "mysql", fast=False) == why


def test_compared_columns_of_a_row():
    """Columns with a canonical text on both sides, and JSON documents by meaning; in fast mode only existence."""
    full, fast = (plan_look(FACTS, "mysql", fast=fast) for fast in (False, True))
    assert isinstance(full, RowLook)
    assert isinstance(fast, RowLook)
    assert [column.name for column in full.comparison.columns] == ["id", "v"]
    assert ([column.name for column in full.documents], full.uncompared) == (["j"], ("w",))
    assert (fast.documents, fast.uncompared) == ((), ())
    assert "MD5" in full.source_query("t", [])
    assert "MD5" not in fast.source_query("t", [])
