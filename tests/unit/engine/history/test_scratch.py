"""Which replays continue each other in a scratch table."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dmdelta.config import ExpressionFilterRule
from dmdelta.engine.history import scratch as scratch_module
from dmdelta.engine.history.scratch import TableScratch
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.rules import Action, EventFilter, SourceRules
from dmdelta.rules.filters import Rule
from dmdelta.rules.operators import Operator, Verb
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.lineage import ReplayRange

LAKE = Lakehouse(root="/lake")
BEGIN, END = Position(1, "binlog.000001", 4), Position(1, "binlog.000001", 900)
LATER = Position(1, "binlog.000002", 900)
NO_FILTERS = SourceRules("s1")


def run_of(table, begin=BEGIN, end=END, rules=NO_FILTERS):
    """The identity of a rebuild of `t`, whose history begins in `table`."""
    context = SilverContext(LAKE, "task", "s1", "run", "mysql", rules)
    task = SimpleNamespace(lakehouse=LAKE, spec=SimpleNamespace(name="task"))
    scratch = TableScratch(task, context, ("shop", "t"), lambda _: None)
    return scratch.request([ReplayRange(begin, end, table=table)], "rebuild", "").context.run


@pytest.mark.parametrize(
    ("table", "begin", "end", "same"),
    [
        (("shop", "t"), BEGIN, LATER, True),
        (None, BEGIN, END, True),
        (("shop", "other"), BEGIN, END, False),
        (("shop", "t"), END, LATER, False),
    ],
)
def test_a_replay_continues_one_whose_history_begins_alike(table, begin, end, same):
    """In the same table at the same position; its end does not matter."""
    assert (run_of(table, begin, end) == run_of(("shop", "t"))) is same


FILTERED = ExpressionFilterRule.model_validate({"schema": "shop", "table": "t", "delete-value-expr": "id > 5"})
IGNORED = Rule("r", "shop", None, ("delete",), (), Action.IGNORE)
SKIPS = {BEGIN: Operator(Verb.SKIP), END: Operator(Verb.REPLACE, ("ALTER TABLE t ADD COLUMN n INT",))}


@pytest.mark.parametrize(
    "rules",
    [
        SourceRules("s1", expressions=(FILTERED,)),
        SourceRules("s1", events=EventFilter((IGNORED,))),
        SourceRules("s1", operators=SKIPS),
    ],
)
def test_a_replay_under_other_rules_starts_over(rules):
    """Filters and overrides of statements decide about the rows; the order in which overrides were read does not."""
    same = replace(rules, operators=dict(reversed(rules.operators.items())))
    assert run_of(("shop", "t"), rules=rules) == run_of(("shop", "t"), rules=same) != run_of(("shop", "t"))


def test_a_replay_of_another_version_starts_over(monkeypatch):
    """Versions may apply the same history differently."""
    before = run_of(("shop", "t"))
    monkeypatch.setattr(scratch_module, "__version__", "0.0.0")
    assert run_of(("shop", "t")) != before
