"""When a command starts its work, according to the stages that it shows."""

from benchmarks.starts import Start, Starts, start_of


def test_the_work_starts_with_the_first_stage_after_spark_has_started_and_the_tables_are_known():
    stages = {
        "starting Spark": 0.5,
        "looking up tables": 4.0,
        "comparing a.b (1 of 2)": 6.5,
        "comparing a.c (2 of 2)": 8.0,
    }
    assert start_of(0.25, stages, 9.0) == Start(0.25, 4.0, 6.5)
    assert start_of(0.25, {"starting Spark": 0.5, "reading bronze": 4.0}, 9.0) == Start(0.25, 4.0, 4.0)
    assert start_of(0.25, {"starting Spark": 0.5}, 9.0) == Start(0.25, 9.0, 9.0)


def test_a_line_has_the_median_of_each_time():
    """A missed target is shown."""
    found = {
        "events": [Start(0.5, 3.0, 3.0), Start(0.75, 4.0, 4.0), Start(1.0, 20.0, 20.0)],
        "quality": [Start(0.5, 3.0, 8.25)],
    }
    assert list(Starts(None, found).lines())[2:] == [
        "| `events` | 3 | 0.8 | 4.0 | 4.0 | ≤ 8 |",
        "| `quality` | 1 | 0.5 | 3.0 | 8.2 | ≤ 8, missed |",
    ]
