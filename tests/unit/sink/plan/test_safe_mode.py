"""When the sink is in safe mode: DM's exit point logic, and the records that make it unnecessary."""

import pytest

from dmdelta.model.position import Position
from dmdelta.sink.plan.safe_mode import Evidence, plan_safe_mode


def at(offset):
    return Position(1, "binlog.000001", offset)


def plan(*, always=False, **evidence):
    return plan_safe_mode(Evidence(**evidence), always=always, duration=60)


def test_records_make_it_unnecessary():
    """With complete records safe mode is off, however the last run ended."""
    found = plan(checkpoint=at(100), exit_point=at(900))
    assert not found.is_on(at(100), 0)


@pytest.mark.parametrize(("checkpoint", "on"), [(100, True), (899, True), (900, False)])
def test_up_to_the_exit_point(checkpoint, on):
    """checkpoint < safemode_exit_point: on up to that point; equal: everything had been executed."""
    found = plan(checkpoint=at(checkpoint), exit_point=at(900), ended=True, proven=False)
    assert found.is_on(at(checkpoint), 0) is on
    assert not found.is_on(at(900), 0)


def test_an_exit_point_that_is_not_final():
    """A killed run has handed over more than its last flush states: at most up to where bronze ended."""
    found = plan(checkpoint=at(100), exit_point=at(900), proven=False, landed=at(500))
    assert found.is_on(at(899), 1000)
    assert not found.is_on(at(900), 61)
    assert plan(checkpoint=at(100), exit_point=at(300), proven=False, landed=at(500)).is_on(at(499), 1000)


def test_no_exit_point():
    """After a killed process: on for safe-mode-duration, and up to where bronze ended."""
    found = plan(checkpoint=at(100), proven=False, landed=at(500))
    assert found.is_on(at(900), 59)
    assert not found.is_on(at(900), 61)
    assert found.is_on(at(499), 1000)


def test_metadata_removed_by_hand():
    """It is unknown what was executed, as after a killed process."""
    assert plan(checkpoint=None, proven=False, landed=at(500)).is_on(at(4), 1000)


def test_always():
    """safe-mode: true applies to the whole run."""
    assert plan(always=True, checkpoint=at(100)).is_on(at(10**6), 10**6)


def test_always_keeps_what_is_unknown():
    """A stop in such a run must still leave the exit point of the unproven range."""
    found = plan(always=True, checkpoint=at(100), exit_point=at(900), ended=True, proven=False)
    assert found.until == at(900)
    assert (found.is_unknown(at(899), 0), found.is_unknown(at(900), 0)) == (True, False)
