"""The state of a run in memory."""

import json
import threading
from datetime import timedelta

import pytest

from dmdelta.engine.control.state import RunState, State, failed, updated
from dmdelta.errors import SourceUnavailable, StageFailed


def test_a_state_is_waited_for_across_threads():
    """The wait ends with the first of the states; a state that is not reached is not reported."""
    state = RunState()
    assert state.now.state is State.STARTING
    threading.Timer(0.05, lambda: state.publish(State.PAUSED)).start()
    reported = state.wait_for((State.PAUSED, State.FAILED), 10)
    assert reported is not None
    assert reported.state is State.PAUSED
    assert state.wait_for((State.STOPPED,), 0.01) is None


def test_a_repeated_state_keeps_its_time_and_has_the_new_error():
    """`since` is when the state was entered; the reason is the current one."""
    state = RunState()
    state.publish(State.RUNNING)
    began = state.now.at
    state.publish(State.RUNNING, SourceUnavailable("gone", hint="wait"))
    assert (state.now.at, state.now.error, state.now.hint) == (began, "gone", "wait")
    state.publish(State.RUNNING)
    assert (state.now.error, state.now.hint) == (None, None)


def test_another_state_has_its_own_time():
    """It is the time of the change, in either direction."""
    state = RunState()
    for entered in (State.RUNNING, State.PAUSED, State.RUNNING, State.FAILED):
        before = state.now.at
        state.publish(entered)
        assert state.now.at > before


def test_an_update_that_another_one_replaced_is_an_error():
    """The answer has the settings in effect, or says that they differ."""
    wanted = json.dumps({"checkpoint-flush-interval": 2.0})
    assert updated("t", wanted, wanted, "host:1").checkpoint_flush_interval == timedelta(seconds=2)
    with pytest.raises(StageFailed, match="other settings in effect"):
        updated("t", wanted, json.dumps({"checkpoint-flush-interval": 9.0}), "host:1")


@pytest.mark.parametrize(("hint", "shown"), [("free space", "free space"), (None, "see its log"), ("", "see its log")])
def test_a_command_to_a_failed_task_shows_its_error(hint, shown):
    """With the hint of that error, or the advice to read the log if it has none."""
    error = failed("shop", "the storage is full", hint)
    assert (error.message, error.hint) == ("the task shop has failed: the storage is full", shown)
