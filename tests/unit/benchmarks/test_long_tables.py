"""The sections of 200 tables and of a schema of 5,000: first and last minutes, and memory by time."""

from datetime import datetime, timedelta, timezone

from benchmarks.ages import MINUTE, Freshness
from benchmarks.figures import Run
from benchmarks.long_tables import memory_between, schema_section, tables_section
from benchmarks.usage import Usage

BEGAN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
EVERY = 30.0
SAMPLES = [Usage(1_000.0 + EVERY * number, 10**9 + number, 0, 0, 0.0, 0.0) for number in range(61)]
RUN = Run(BEGAN, BEGAN + 30 * MINUTE, SAMPLES, written=720_000, late=0.2, tail=12.0)


def fresh(p95: float) -> Freshness:
    return Freshness(rows=120_000, missing=0, p50=8.0, p95=p95, oldest=30.0)


def test_memory_of_some_minutes():
    """61 samples, one per half minute: those of the second to the sixth minute are the 3rd to the 13th."""
    assert memory_between(RUN, RUN.steady, RUN.steady + 5 * MINUTE) == 10**9 + 7
    assert memory_between(RUN, RUN.end - timedelta(minutes=5), RUN.end) == 10**9 + 55


def test_the_last_minutes_are_compared_with_the_first():
    lines = list(tables_section(RUN, [fresh(20.0), fresh(27.0)], [2e9, 2.2e9]))
    assert "| age of a change in silver, p50 | 8.0 s | 8.0 s | 1.00 | ≤ 1.3 | ok |" in lines
    assert "| age of a change in silver, p95 | 20.0 s | 27.0 s | 1.35 | ≤ 1.3 | too slow |" in lines
    assert "| memory (PSS), median | 2.00 GB | 2.20 GB | 1.10 | ≤ 1.3 | ok |" in lines
    assert "| age of a change in silver, p95, at the end | | 27.0 s | | ≤ 90 s | ok |" in lines
    assert "| changes that are not in silver | | 0 | | 0 | ok |" in lines
    assert lines[0] == "200 tables, 400 row changes per second, 30 minutes."


def test_a_schema_with_many_tables():
    lines = list(schema_section(5_000, 41.25, RUN, fresh(12.5)))
    assert lines[0].startswith("5,000 tables in one schema, 100 row changes per second")
    assert "| from the process's start to the first rows in silver | 41.2 s |" in lines
    assert "| age of a change in silver, p95 | 12.5 s |" in lines
