"""The checkpoint: global point ≤ table points ≤ exit point."""

import pytest

from dmdelta.model.position import Position
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.plan.checkpoint import PushedPoint, plan_checkpoint, plan_ended

A, B = ("d", "a"), ("d", "b")


def at(offset):
    return Position(1, "binlog.000001", offset)


def test_points_at_a_boundary():
    """Everything before the global point was executed, of each table; the exit point may be later."""
    found = plan_checkpoint(PushedPoint(at(100), at(100)), at(300), {A: at(4), B: at(200)}, "interval")
    assert (found.position, found.exit_point) == (at(100), at(300))
    assert found.tables == {A: at(100), B: at(200)}
    assert found.ahead() == {B: at(200)}
    assert not found.ended


def test_points_within_a_transaction():
    """The global point stays at the transaction's beginning, the table points advance."""
    found = plan_checkpoint(PushedPoint(at(100), at(180)), at(180), {A: at(4)}, "interval")
    assert (found.position, found.ahead()) == (at(100), {A: at(180)})
    assert plan_checkpoint(PushedPoint(None, at(180)), at(180), {A: at(4)}, "interval") is None


def test_a_held_shard_keeps_its_point():
    """It lies before the global point, until the shard is released; also if other tables are ahead."""
    progress = Progress(at(300), {A: at(4), B: at(4)})
    progress.hold(A, at(60))
    found = progress.checkpoint(PushedPoint(at(100), at(200)))
    assert (found.position, found.held(), found.ahead()) == (at(100), {A: at(60)}, {B: at(200)})
    progress.release(A)
    assert progress.checkpoint(PushedPoint(at(200), at(200))).held() == {}


def test_a_table_never_passes_the_exit_point():
    """A table's point after the exit point would skip changes that were not handed over."""
    with pytest.raises(AssertionError, match="exit point"):
        plan_checkpoint(PushedPoint(at(100), at(200)), at(150), {A: at(4)}, "interval")


def test_tables_of_a_run_that_ends_early():
    """A table without unexecuted changes is at the end of what was handed over, if all workers have ended."""
    ready = PushedPoint(at(100), at(100))
    assert plan_ended(ready, at(300), [A, B], [B]) == {A: at(300), B: at(100)}
    assert plan_ended(ready, at(300), [A, B], None) == {A: at(100), B: at(100)}
    assert plan_ended(ready, None, [A], []) == {A: at(100)}


def test_the_exit_point_is_only_raised():
    """An unproven range that ends later than what is handed over stays in the exit point."""
    progress = Progress(at(500))
    progress.raise_exit_point(at(200))
    assert progress.checkpoint(PushedPoint(at(200), at(200)), "stop").exit_point == at(500)
    progress.raise_exit_point(at(600))
    assert progress.checkpoint(PushedPoint(at(200), at(200)), "stop").exit_point == at(600)


def test_gtid_sets_are_those_of_landed_batches():
    """Within a batch, the set is that of the batch before: all of it was executed."""
    progress = Progress()
    for offset, text in ((100, "a:1-5"), (300, "a:1-9")):
        progress.add_gtids(at(offset), text)
    progress.raise_exit_point(at(300))
    found = progress.checkpoint(PushedPoint(at(200), at(200)))
    assert (found.gtid_set, found.exit_gtid_set) == ("a:1-5", "a:1-9")
    assert progress.checkpoint(PushedPoint(at(300), at(300))).gtid_set == "a:1-9"
