"""How often batches land."""

import pytest

from dmdelta.engine.ingest.loop import plan_pause
from dmdelta.engine.telemetry.counters import RunCounters


@pytest.mark.parametrize(
    ("freshness", "land", "pause"),
    [
        (10, 0, 1.25),
        (10, 0.5, 2),
        (10, 1, 4),
        (10, 2.5, 10),
        (10, 4, 10),
        (10, 12, 24),
        (60, 1, 7.5),
        (1, 0.1, 0.4),
        (0, 1, 0),
    ],
)
def test_batches_are_spaced_by_the_target_freshness(freshness, land, pause):
    """An eighth of it, or four times the duration of a batch; for slow batches all of it, or twice their duration."""
    assert plan_pause(freshness, land) == pause


@pytest.mark.parametrize(
    ("freshness", "land", "pause"), [(10, 0.1, 1), (10, 0.4, 1), (10, 0.8, 1.6), (10, 6, 12), (1, 0.1, 0.4), (0, 1, 0)]
)
def test_batches_for_live_reads_are_closer(freshness, land, pause):
    """The spacing is their interval, or twice the duration of a batch, but never longer than for silver."""
    assert plan_pause(freshness, land, 1) == pause


def test_recent_durations_of_phases(monkeypatch):
    """The newest has the highest weight; failures are ignored; sources are separate."""
    now = [100.0]
    monkeypatch.setattr("dmdelta.engine.telemetry.counters.time.monotonic", lambda: now[0])
    counters = RunCounters(lambda _: None)
    assert counters.recent("s1", "apply") == 0
    for seconds in (4.0, 4.0, 8.0):
        with counters.spending("s1", "apply"):
            now[0] += seconds
    assert 4 < counters.recent("s1", "apply") < 8
    before = counters.recent("s1", "apply")
    with pytest.raises(ValueError, match="no"), counters.spending("s1", "apply"):
        raise ValueError("no")
    assert counters.recent("s1", "apply") == before
    assert (counters.recent("s2", "apply"), counters.recent("s1", "land")) == (0, 0)
