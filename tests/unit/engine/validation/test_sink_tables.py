"""Which tables can be compared with the sink's target."""

import pytest

from dmdelta.config.expression_filter import ExpressionFilterRule
from dmdelta.engine.validation.sink_tables import SinkTable, plan_sink_table
from dmdelta.rules import Routes, SourceRules
from dmdelta.rules.comparable_rows import ALL_ROWS
from dmdelta.rules.routes import Rule

NAME, OTHER = ("d", "t_1"), ("d", "t_2")


def rules(*extracts, **expressions):
    route = Rule("r", "d", "t_*", "d", "all", extracts, merges=True)
    made = (
        [ExpressionFilterRule.model_validate({"schema": "d", "table": "plain", **expressions})] if expressions else []
    )
    return SourceRules("s1", routes=Routes((route,)), expressions=tuple(made))


def test_a_table_of_its_own():
    """Its rows are all rows of the target's table."""
    assert plan_sink_table(rules(), ("d", "plain"), [NAME], 2) == SinkTable(("d", "plain"), ("d", "plain"), ALL_ROWS)


def test_a_merged_table_needs_a_column_that_tells_whose_a_row_is():
    """Extracted values that two of its tables have in common tell nothing, nor does a second source."""
    number, same = ("table", "t_(.*)", "no"), ("schema", "(.*)", "of")
    planned = plan_sink_table(rules(number), NAME, [OTHER], 1)
    assert isinstance(planned, SinkTable)
    assert planned.own_rows == "CONVERT(`no` USING utf8mb4) = '1' COLLATE utf8mb4_bin"
    for extracts, sources in ((), 1), ((same,), 1), ((number,), 2):
        assert "rows of other source tables" in plan_sink_table(rules(*extracts), NAME, [OTHER], sources)


@pytest.mark.parametrize(
    ("kind", "compared"), [("insert-value-expr", False), ("update-new-value-expr", False), ("delete-value-expr", True)]
)
def test_filters(kind, compared):
    """An UPDATE finds no row that was left out: only left out deletes leave all others as they are."""
    planned = plan_sink_table(rules(**{kind: "v > 1"}), ("d", "plain"), [], 1)
    assert isinstance(planned, SinkTable) is compared
