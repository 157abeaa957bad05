"""Windows of time, split into buckets."""

from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.report.time_buckets import MOST_STRETCHES, STEPS, stretches_of

AT = datetime(2026, 11, 22, 14, 5, 9, 123, tzinfo=timezone.utc)


@pytest.mark.parametrize("seconds", [0, 0.5, 59, 61, 3600, 86_400, 7 * 86_400, 400 * 86_400])
def test_every_moment_is_in_one_of_few_buckets(seconds):
    """For any length of the window, including its first and last moments."""
    found = stretches_of(AT - timedelta(seconds=seconds), AT)
    assert len(found.starts) <= MOST_STRETCHES + 1
    assert found.starts[0] <= found.since
    assert found.starts[-1] <= found.until < found.end
    assert {after - before for before, after in zip(found.starts, found.starts[1:], strict=False)} <= {
        timedelta(seconds=found.seconds)
    }
    assert found.begin_of(found.until) == found.starts[-1]


def test_buckets_start_at_round_times():
    """At multiples of their length, which is a round one."""
    found = stretches_of(AT - timedelta(hours=24), AT)
    assert found.seconds in STEPS
    assert [start.minute % 30 for start in found.starts] == [0] * len(found.starts)
