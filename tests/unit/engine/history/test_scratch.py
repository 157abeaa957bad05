"""Which replays continue each other in a scratch table."""

from types import SimpleNamespace

import pytest

from dmdelta.engine.history.scratch import TableScratch
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.rules import SourceRules
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.lineage import ReplayRange

LAKE = Lakehouse(root="/lake")
BEGIN, END = Position(1, "binlog.000001", 4), Position(1, "binlog.000001", 900)
LATER = Position(1, "binlog.000002", 900)


def run_of(table, begin=BEGIN, end=END):
    """The identity of a rebuild of `t`, whose history begins in `table`."""
    context = SilverContext(LAKE, "task", "s1", "run", "mysql", SourceRules("s1"))
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
