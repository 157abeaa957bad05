"""Commands to a task, and what follows a failure."""

import threading

import pytest

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.listener import AUTO_RESUME, obey, plan_after_failure
from dmdelta.engine.control.state import Request, State
from dmdelta.errors import ConfigError, Fenced, HeldByCommand, SourceUnavailable


def test_a_pause_can_be_resumed_and_a_stop_cannot() -> None:
    """Requests in any order: both end the loops, and only a pause can be resumed."""
    stop = StopRequest()
    obey(Request.RESUME, stop)
    assert not stop.requested
    obey(Request.PAUSE, stop)
    assert (stop.requested, stop.is_pause) == (True, True)
    obey(Request.RESUME, stop)
    assert not stop.requested
    assert stop.wait_for_resume()
    obey(Request.PAUSE, stop)
    obey(Request.STOP, stop)
    assert (stop.requested, stop.is_pause) == (True, False)
    obey(Request.RESUME, stop)
    obey(Request.PAUSE, stop)
    assert (stop.requested, stop.is_pause) == (True, False)
    assert not stop.wait_for_resume()


def test_a_stop_ends_the_wait_for_a_resume() -> None:
    """A paused task can be stopped."""
    stop = StopRequest()
    stop.pause()
    threading.Timer(0.05, stop.request).start()
    assert not stop.wait_for_resume()


def test_a_transient_failure_is_retried_with_back_off() -> None:
    """Only retryable errors are retried, and not in a run that ends once it has caught up."""
    transient, permanent = SourceUnavailable("gone", hint="wait"), ConfigError("wrong", hint="fix it")
    first, tenth = (plan_after_failure(transient, failures, ends=False) for failures in (1, 10))
    assert first.state is tenth.state is State.RETRYING
    assert first.delay is not None
    assert tenth.delay is not None
    assert first.delay <= AUTO_RESUME.first < tenth.delay <= AUTO_RESUME.longest
    assert plan_after_failure(permanent, 1, ends=False).delay is None
    assert plan_after_failure(transient, 1, ends=True).delay is None


@pytest.mark.parametrize("ends", [False, True])
def test_a_run_that_is_resumed_while_a_command_works_waits_for_it(ends: bool) -> None:  # noqa: FBT001 - a parameter
    """It asks again after the same time; a run that starts then ends, and so does one beside another run."""
    held = HeldByCommand("another command is working", hint="retry")
    for failures in (1, 10):
        after = plan_after_failure(held, failures, ends=ends, has_begun=True)
        assert after.state is State.RETRYING
        assert after.delay is not None
        assert after.delay <= AUTO_RESUME.first
    assert plan_after_failure(held, 1, ends=ends).delay is None
    assert plan_after_failure(Fenced("another relay", hint="stop it"), 1, ends=ends, has_begun=True).delay is None
