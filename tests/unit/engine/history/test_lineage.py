"""Which ad-hoc snapshots are part of a table's history."""

from dataclasses import replace

import pytest

from dmdelta.engine.history.lineage import plan_reread
from dmdelta.model.position import Position
from dmdelta.silver.history.lineage import Reread
from dmdelta.sink.plan.reload import Reload
from tests.support.commit_tags import tag


def log(offset):
    return Position(2, "binlog.000007", offset)


RESUMED, OVERLAP = log(100), log(150)
MARK = replace(tag(1), begin=RESUMED, end=RESUMED, safe_until=OVERLAP)


@pytest.mark.parametrize(
    ("applied", "marks", "until"),
    [
        (Reload(("shop", "t"), -1, RESUMED, OVERLAP), [], OVERLAP),
        (Reload(("shop", "t"), -1, RESUMED), [], RESUMED),
        (None, [replace(MARK, begin=log(90), end=log(90)), MARK], OVERLAP),
        (None, [replace(MARK, safe_until=None)], RESUMED),
    ],
)
def test_a_snapshot_in_silver_begins_the_history_anew(applied, marks, until):
    """As recorded, or as silver's own commit at the position where the log resumed proves."""
    assert plan_reread(-1, RESUMED, applied, marks) == Reread(-1, RESUMED, until)


@pytest.mark.parametrize("marks", [[], [replace(MARK, begin=OVERLAP, end=OVERLAP)]])
def test_an_abandoned_snapshot_does_not_count(marks):
    """Bronze may have some of its chunks only; another snapshot at another position proves nothing."""
    assert plan_reread(-1, RESUMED, None, marks) is None
