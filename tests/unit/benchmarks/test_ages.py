"""Quantiles of ages weighted by rows, by minute and by table."""

import math
from datetime import datetime, timedelta, timezone

import pytest

from benchmarks.ages import Aged, Event, ages_of, between, by_minute, freshness_of, quantile, spread_of
from dmdelta.model.position import Position

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def aged(age: float, rows: int = 1, table: str = "t", seconds: float = 0, *, applied: bool = True) -> Aged:
    return Aged(table, at(seconds), age, rows, applied)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 1.0), (0.5, 1.0), (0.9, 1.0), (0.91, 2.0), (0.95, 2.0), (0.99, 3.0), (1.0, 3.0)],
)
def test_a_quantile_counts_rows(share, expected):
    """90 rows of age 1, 5 of age 2, 5 of age 3, in any order."""
    assert quantile([aged(3, 5), aged(1, 90), aged(2, 5)], share) == expected


def test_without_changes_there_is_no_quantile():
    assert math.isnan(quantile([], 0.95))


def test_a_change_is_visible_with_the_first_commit_that_ends_behind_it():
    """A position is exclusive: a commit that ends at the event does not contain it."""
    reached = {"t": [(Position(1, "b.000001", 100), at(10)), (Position(1, "b.000001", 200), at(20))]}
    events = [Event("t", Position(1, "b.000001", offset).key, at(5), offset) for offset in (99, 100, 199, 200)]
    found = ages_of(events, reached, end=at(65))
    assert [(one.age, one.applied) for one in found] == [(5, True), (15, True), (15, True), (60, False)]


def test_a_table_without_commits_counts_with_its_age_at_the_end():
    found = ages_of([Event("t", (1, 1), at(0), 7)], {}, end=at(30))
    assert found == [aged(30, 7, applied=False)]


def test_figures_of_changes():
    found = freshness_of([aged(1, 95), aged(9, 4), aged(50, applied=False)])
    assert (found.rows, found.missing, found.p50, found.p95, found.oldest) == (100, 1, 1, 1, 50)


def test_the_evaluated_time_includes_its_start_and_excludes_its_end():
    some = [aged(1, seconds=second) for second in (59, 60, 119, 120)]
    assert between(some, at(60), at(120)) == some[1:3]


def test_minutes_follow_the_commit_time_at_the_source():
    """The last minute may be shorter; changes after the end do not count; a minute without changes has no ages."""
    some = [aged(1, 3, seconds=0), aged(2, 4, seconds=59), aged(3, 5, seconds=121), aged(4, 6, seconds=150)]
    first, second, third = by_minute(some, BEGIN, at(150))
    assert (first.rows, first.p50, first.p95) == (7, 2, 2)
    assert second.rows == 0
    assert math.isnan(second.p95)
    assert (third.rows, third.oldest) == (5, 3)
    assert [minute.rows for minute in by_minute(some, BEGIN, at(120.5))] == [7, 0]
    assert [minute.rows for minute in by_minute(some, BEGIN, at(0.5))] == [3]


def test_the_worst_table_is_compared_with_the_median_one():
    some = [aged(age, 10, table) for age, table in ((4, "a"), (5, "b"), (10, "c"))]
    found = spread_of(some)
    assert (found.worst, found.worst_p95, found.median_p95, found.ratio) == ("c", 10, 5, 2)


def test_a_table_is_evaluated_by_its_own_p95():
    """The worst table has few rows, which do not affect the overall p95."""
    some = [aged(1, 1000, "busy"), aged(60, 1, "rare")]
    assert quantile(some, 0.95) == 1
    assert spread_of(some).worst == "rare"


def test_no_changes_are_an_error():
    with pytest.raises(ValueError, match="no changes"):
        spread_of([])
