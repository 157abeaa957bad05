"""What a report reads from the tables that checks write."""

from datetime import timedelta

import pytest

from dmdelta.report.checks import read_checks
from dmdelta.report.facts import Checks, ChecksRun, FailedCheck
from dmdelta.report.time_buckets import stretches_of
from tests.support.reports import UNTIL

STRETCHES = stretches_of(UNTIL - timedelta(hours=24), UNTIL)
RESULTS = (
    # hours ago, table, expectation, success, evaluated, unexpected
    (30, "orders", "too old to count", False, 9, 9),
    (5, "orders", "not_null(total)", False, 100, 3),
    (1, "orders", "not_null(total)", True, 100, 0),
    (4, "orders", "unique(id)", True, None, None),
    (1, "orders", "unique(id)", False, None, None),
    (1, "items", "not_null(total)", False, 50, 7),
)


@pytest.fixture
def checked(spark, lakehouse):
    """The tables of a task whose checks and validator have run."""

    def write(name, columns, rows):
        spark.createDataFrame(rows, columns).writeTo(lakehouse.metadata(name)).using("delta").create()

    columns = (
        "at TIMESTAMP, table_schema STRING, table_name STRING, expectation STRING, scope STRING, success BOOLEAN, "
    )
    columns += "evaluated BIGINT, unexpected BIGINT, on_failure STRING, samples ARRAY<STRING>, "
    columns += "begin_position STRING, end_position STRING"
    rows = [
        (UNTIL - timedelta(hours=ago), "shop", *told[:2], "table", *told[2:], "warn", ["s3cret"], None, "2/b:9")
        for ago, *told in RESULTS
    ]
    ranged = ("orders", "unique(id)", "replay", False, 10, 2, "stop", ["s3cret"], "2/b:4", "2/b:9")
    rows.append((UNTIL - timedelta(hours=2), "shop", *ranged))
    write("t_quality", columns, rows)
    columns = "id STRING, entry STRING, schema_name STRING, table_name STRING, row_key STRING, state STRING, "
    columns += "row_values STRING, updated_at TIMESTAMP"
    told = [
        ("error", "1", "new", 3),
        ("error", "1", "ignored", 2),
        ("error", "2", "new", 3),
        ("pending", "3", "pending", 1),
    ]
    rows = [
        ("one", entry, "shop", "orders", key, state, "s3cret", UNTIL - timedelta(hours=ago))
        for entry, key, state, ago in told
    ]
    write("t_validator", columns, rows)
    return lakehouse


def test_the_newest_result_of_each_check_counts(spark, checked):
    """All runs by time range, the last run of each check, and the present states of the validator's errors."""
    found = read_checks(spark, checked, "t", STRETCHES)
    hour = timedelta(hours=1)
    assert found.runs == (
        ChecksRun(STRETCHES.begin_of(UNTIL - 5 * hour), 0, 1),
        ChecksRun(STRETCHES.begin_of(UNTIL - 4 * hour), 1, 0),
        ChecksRun(STRETCHES.begin_of(UNTIL - 2 * hour), 0, 1),
        ChecksRun(STRETCHES.begin_of(UNTIL - hour), 1, 2),
    )
    assert set(found.failed) == {
        FailedCheck(
            at=UNTIL - hour,
            table="shop.orders",
            expectation="unique(id)",
            unexpected=None,
            evaluated=None,
            on_failure="warn",
            scope="table",
            begin=None,
            end="2/b:9",
        ),
        FailedCheck(
            at=UNTIL - hour,
            table="shop.items",
            expectation="not_null(total)",
            unexpected=7,
            evaluated=50,
            on_failure="warn",
            scope="table",
            begin=None,
            end="2/b:9",
        ),
        FailedCheck(
            at=UNTIL - 2 * hour,
            table="shop.orders",
            expectation="unique(id)",
            unexpected=2,
            evaluated=10,
            on_failure="stop",
            scope="replay",
            begin="2/b:4",
            end="2/b:9",
        ),
    }
    assert found.validator == {"new": 1, "ignored": 1}
    assert "s3cret" not in str(found)


def test_a_task_without_checks_has_none(spark, lakehouse, tmp_path):
    """Reading creates no table."""
    assert read_checks(spark, lakehouse, "t", STRETCHES) == Checks()
    assert not (tmp_path / "lakehouse").exists()
