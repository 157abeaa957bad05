"""Requests to stop or pause."""

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.errors import StageFailed


def test_a_drain_is_part_of_a_stop_without_a_failure():
    """Only until its time is over, and not once something has failed."""
    stop = StopRequest()
    assert not stop.drains
    stop.request(drain=1000.0)
    assert (stop.requested, stop.drains) == (True, True)
    stop.fail(StageFailed("landing failed", hint="retry"))
    assert (stop.requested, stop.drains) == (True, False)


def test_a_stop_without_time_does_not_drain():
    """Also if it follows one with time: an operator cannot wait any longer."""
    stop = StopRequest()
    stop.request(drain=1000.0)
    stop.request()
    assert (stop.requested, stop.drains) == (True, False)


def test_a_pause_ends_with_a_resume_and_a_stop_is_final():
    stop = StopRequest()
    stop.pause()
    assert (stop.requested, stop.is_pause) == (True, True)
    stop.resume()
    assert not stop.requested
    stop.pause()
    stop.request()
    stop.resume()
    assert (stop.requested, stop.is_pause, stop.wait_for_resume()) == (True, False, False)
