"""The evaluation of a freshness run, from the observations to the printed lines."""

from datetime import datetime, timedelta, timezone

import pytest

from benchmarks.ages import Event
from benchmarks.commit_log import Commit
from benchmarks.figures import Run, SchemaRows, Target, evaluate, lines_of
from benchmarks.usage import Usage
from dmdelta.lakehouse.history import CommitTag
from dmdelta.model.position import Position

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
SECONDS = 180


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def commit(second: int, begin: int, end: int) -> Commit:
    """A commit of changes up to a second: an event's offset is its second."""
    places = (Position(1, "b.000001", offset) for offset in (begin, end))
    return Commit(second, at(second), "WRITE", CommitTag("app", end, "task", "source", "run", *places))


def run(samples_every: int = 5) -> Run:
    """Memory grows in the first minute only."""
    samples = [
        Usage(1000.0 + second, min(second, 60) * 10**7, 10**8, 10**8, second * 1.5, second * 0.5)
        for second in range(0, SECONDS + 1, samples_every)
    ]
    return Run(BEGIN, at(SECONDS), samples, written=400, late=0.25, tail=30.0)


def events(table: str) -> list[Event]:
    """One row change per second."""
    return [Event(table, Position(1, "b.000001", second).key, at(second), 1) for second in range(SECONDS)]


@pytest.fixture
def figures():
    """Table a commits every 10 s, 2 s later; table b every 30 s, 10 s later."""
    commits = {
        name: [commit(end + delay, end - every, end) for end in range(every, SECONDS + every + 1, every)]
        for name, every, delay in (("a", 10, 2), ("b", 30, 10))
    }
    return evaluate(run(), [*events("a"), *events("b")], commits, SchemaRows(rows=5, structures=2))


def test_the_first_minute_is_evaluated_separately(figures):
    assert [minute.rows for minute in figures.minutes] == [120, 120, 120]
    assert figures.steady.rows == 240
    assert (figures.steady.oldest, figures.steady.missing) == (40, 0)


def test_the_worst_table_is_named(figures):
    """Ages of a are 3 to 12 s, those of b 11 to 40 s."""
    assert (figures.spread.worst, figures.spread.worst_p95) == ("b", 39)
    assert figures.spread.median_p95 == (12 + 39) / 2


def test_memory_and_cpu_time_are_those_from_the_second_minute_on(figures):
    assert (figures.memory.least, figures.memory.most, figures.memory.flat) == (7 * 10**8, 7 * 10**8, True)
    assert (figures.cpu.java, figures.cpu.python, figures.cpu.seconds) == (180, 60, 120)


def test_turns_are_those_from_the_second_minute_on(figures):
    """12 of a and 4 of b in two minutes."""
    assert (figures.turns.commits, figures.turns.turns) == (16, 16)


def test_changes_that_silver_lacks_count_with_their_age_at_the_end():
    """Nothing was committed after the first minute: the tail of the load is part of the age."""
    commits = {"a": [commit(60, 0, 60)]}
    found = evaluate(run(), events("a"), commits, SchemaRows(1, 1))
    assert found.steady.missing == found.steady.rows == 120
    assert (found.steady.oldest, found.minutes[-1].oldest) == (150, 90)


def test_the_page_shows_figures_beside_their_targets(figures):
    target = Target(p50=9.0, p95=16.0, first_p95=30.0, memory=3.5e9, ratio=1.5)
    lines = list(lines_of(run(), figures, target))
    assert lines[:11] == [
        "| figure | measured | target |",
        "| --- | ---: | ---: |",
        "| p50 from the second minute on | 12.0 s | ≤ 9 s |",
        "| p95 from the second minute on | 37.0 s | ≤ 16 s |",
        "| p95 of the first minute | 37.0 s | ≤ 30 s |",
        "| p95 of the worst table (b), of the median one: ratio | 39.0 s, 25.5 s: 1.53 | ≤ 1.5 |",
        "| commits of silver per table and turn | 16 / 16 = 1.00 | 1 |",
        "| schema rows in bronze per structure | 5 / 2 | 1 |",
        "| memory (PSS): least / median / most, trend | 0.70 / 0.70 / 0.70 GB, +0 MB per minute: flat | ≤ 3.5 GB, flat |",
        "| CPU | JVM 180 s, Python 60 s in 120 s: 2.00 cores | |",
        "",
    ]
    assert "Commits of silver per second, from the second minute on: 0.13." in lines
    assert "Other commits of silver: none." in lines
    assert "400 row changes were written; the writer was at most 0.2 s late." in lines


def test_a_load_without_targets_has_none(figures):
    lines = [line for line in lines_of(run(), figures, Target()) if line.startswith("| p")]
    assert len(lines) == 4
    assert all(line.endswith("|  |") for line in lines)
