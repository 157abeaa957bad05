"""What a request does, and what follows a failure."""

import threading

from dmdelta.engine.control import AUTO_RESUME, obey, plan_after_failure
from dmdelta.engine.control_table import Request, State
from dmdelta.engine.stop import StopRequest
from dmdelta.errors import ConfigError, SourceUnavailable


def test_a_pause_can_be_taken_back_and_a_stop_cannot() -> None:
    """Requests in any order: the loops end on both, and only a pause ends again."""
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


def test_whoever_waits_for_a_resume_is_woken_by_a_stop() -> None:
    """A paused task can be stopped."""
    stop = StopRequest()
    stop.pause()
    threading.Timer(0.05, stop.request).start()
    assert not stop.wait_for_resume()


def test_a_failure_that_may_pass_is_tried_again_later_and_later() -> None:
    """Retryable ones with back-off; not others, and not when the run is to end with what there is."""
    passing, lasting = SourceUnavailable("gone", hint="wait"), ConfigError("wrong", hint="mend it")
    first, tenth = (plan_after_failure(passing, failures, ends=False) for failures in (1, 10))
    assert first.state is tenth.state is State.RETRYING
    assert first.delay is not None
    assert tenth.delay is not None
    assert first.delay <= AUTO_RESUME.first < tenth.delay <= AUTO_RESUME.longest
    assert plan_after_failure(lasting, 1, ends=False).delay is None
    assert plan_after_failure(passing, 1, ends=True).delay is None
