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


def test_a_table_that_is_not_merged():
    """All rows of the target's table belong to it."""
    assert plan_sink_table(rules(), ("d", "plain"), [NAME], 2) == SinkTable(("d", "plain"), ("d", "plain"), ALL_ROWS)


def test_a_merged_table_requires_an_extracted_column_that_identifies_its_rows():
    """It cannot be compared if two of its tables share the extracted values, or with a second source."""
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
    """An UPDATE of a skipped row has no effect: only tables with skipped deletes can be compared."""
    planned = plan_sink_table(rules(**{kind: "v > 1"}), ("d", "plain"), [], 1)
    assert isinstance(planned, SinkTable) is compared
