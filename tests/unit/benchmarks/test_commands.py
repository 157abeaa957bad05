"""The percentile of measured times, and the rows of the page."""

import pytest

from benchmarks.commands import Timings, percentile


@pytest.mark.parametrize(
    ("count", "share", "value"), [(1, 0.5, 1), (1, 0.95, 1), (2, 0.5, 1), (20, 0.95, 19), (21, 0.95, 20), (5, 1.0, 5)]
)
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(count, share, value):
    assert percentile(range(count, 0, -1), share) == value


def test_a_missed_target_is_shown():
    """A command without a target has none."""
    seconds = {"status": [0.5, 0.75], "pause": [0.5, 3.0]}
    assert list(Timings(None, 1.0, seconds).lines()) == [
        "| `status` | 2 | 0.50 | 0.75 | 0.75 | ≤ 1 |",
        "| `pause` | 2 | 0.50 | 3.00 | 3.00 | ≤ 1, missed |",
    ]
    assert list(Timings(None, None, {"events": [9.0]}).lines()) == ["| `events` | 1 | 9.00 | 9.00 | 9.00 |  |"]
