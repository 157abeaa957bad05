"""Observations of sources: lags and rates."""

import pytest

from dmdelta.engine.telemetry.observations import RATE_SECONDS, Observations, RateTracker
from dmdelta.engine.telemetry.stats import SourceStats
from dmdelta.model.position import Position


def test_a_rate_is_that_of_the_last_minute():
    """An idle hour before does not lower it, and a burst long ago does not raise it."""
    tracker = RateTracker()
    assert tracker.per_second() is None
    tracker.saw(0, 0.0)
    assert tracker.per_second() is None
    tracker.saw(10_000, 10.0)
    assert tracker.per_second() == 1000.0
    for second in range(11, 200):
        tracker.saw(10_000 + 5 * (second - 10), float(second))
    assert tracker.per_second() == pytest.approx(5.0)
    assert len(tracker._counts) <= RATE_SECONDS + 2


def test_sources_are_observed_separately():
    """Each has its own rate and lag; a source that was never seen has none."""
    observations = Observations()
    for now, rows in ((10.0, 0), (20.0, 70)):
        stats = [SourceStats("a", {"server": Position(1, "b.000001", 100)}), SourceStats("b")]
        observations.see(stats, now, {"a": rows})
    assert observations.rows_per_second("a") == 7.0
    assert observations.rows_per_second("b") == 0.0
    assert observations.rows_per_second("c") is None
    assert observations.lag("c", None) is None
    assert observations.lag("a", Position(1, "b.000001", 100)) == 0.0
    assert observations.lag("a", Position(1, "b.000001", 99)) > 0.0


def test_a_poll_is_at_most_once_a_second():
    """For all callers together."""
    observations, calls = Observations(), []

    def read():
        calls.append(1)
        return [SourceStats("a")]

    observations.poll(read, dict)
    observations.poll(read, dict)
    assert len(calls) == 1
    assert [each.source_id for each in observations.newest()[0]] == ["a"]
