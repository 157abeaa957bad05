"""Positions of marks, and labels of axes."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.report.charts import COUNTS, DURATIONS, VALUE_TICKS, Series, lined, stacked
from dmdelta.report.formatting import count_of, duration_of, whole_of
from dmdelta.report.time_buckets import stretches_of

T0 = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)
HOUR = stretches_of(T0, T0 + timedelta(minutes=59))


def test_bars_are_stacked_from_the_bottom():
    """In the order of the names; a value of 0 has no bar; the highest is at most at the maximum tick."""
    at = HOUR.starts[10]
    series = Series(("a", "b", "c"), {at: {"a": 3, "b": 0, "c": 1}}, whole_of)
    chart = stacked(series, HOUR, COUNTS)
    below, above = chart.bars
    assert (below.series, above.series) == ("a", "c")
    assert below.top + below.height == pytest.approx(100)
    assert above.top + above.height == pytest.approx(below.top)
    assert above.top == pytest.approx(0)
    (spot,) = chart.spots
    assert (spot.text, spot.left) == ("22 Nov 14:10: a 3, b 0, c 1", pytest.approx(100 / 6, abs=0.01))


def test_a_line_has_a_gap_where_there_is_no_value():
    """Each value has a dot."""
    values = {HOUR.starts[number]: {"lag": value} for number, value in enumerate([1.0, 2.0, None, 4.0])}
    (line,) = lined(Series(("lag", "never"), values, duration_of), HOUR, DURATIONS).lines
    assert len(line.dots) == 3
    assert (line.path.count("M"), line.path.count("L")) == (2, 1)
    assert [top for _, top in line.dots] == [75, 50, 0]


@given(st.floats(min_value=0, max_value=1e9), st.sampled_from([COUNTS, DURATIONS]))
def test_ticks_are_few_and_reach_the_maximum(most, scale):
    """They start at 0, are evenly spaced, and have distinct labels."""
    marks = scale.ticks(most)
    assert marks[0] == 0
    assert marks[-1] >= most * (1 - 1e-6)
    assert 2 <= len(marks) <= VALUE_TICKS + 2
    labels = [scale.word(mark) for mark in marks]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("seconds", [0, 5, 90, 3600, 86_400, 30 * 86_400])
def test_time_ticks_are_few_and_within_the_plot(seconds):
    """For any window."""
    found = stretches_of(T0 - timedelta(seconds=seconds), T0)
    ticks = stacked(Series(("a",), {found.starts[0]: {"a": 1}}, whole_of), found, COUNTS).times
    assert len(ticks) <= 7
    assert all(0 <= tick.at < 100 for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.04, "0.04 s"), (0.5, "0.5 s"), (12.04, "12 s"), (59.99, "1 min"), (90, "1.5 min"), (90_000, "1 d")],
)
def test_durations_are_formatted_in_their_unit(seconds, text):
    """With one decimal at most."""
    assert duration_of(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999, "999"), (1500, "1.5k"), (150_000, "150k"), (2e6, "2M")])
def test_counts_are_abbreviated(number, text):
    """For an axis."""
    assert count_of(number) == text
