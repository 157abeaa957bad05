"""The stored results of checks: `dmdelta quality`, and the validator."""

from typing import Any

from pyspark.sql import SparkSession

from dmdelta.engine.validation.store import VALIDATOR
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import utc
from dmdelta.model.spark_sql import literal
from dmdelta.quality.results import QUALITY
from dmdelta.report.facts import Checks, ChecksRun, FailedCheck
from dmdelta.report.time_buckets import Stretches

MOST_FAILED = 20


def read_checks(spark: SparkSession, lakehouse: Lakehouse, task: str, stretches: Stretches) -> Checks:
    """The results of the window's checks, and the validator's current errors; empty if none ever ran.

    Raises:
        LakehouseError: a table of results cannot be read.
    """
    results, validator = QUALITY.of(spark, lakehouse, task), VALIDATOR.of(spark, lakehouse, task)
    within = f"at >= TIMESTAMP {literal(stretches.since.isoformat())}"
    begin = f"timestamp_seconds(floor(unix_seconds(at) / {stretches.seconds}) * {stretches.seconds})"
    runs = results.query(
        f"SELECT {begin} AS at, count_if(success) AS passed, count_if(NOT success) AS failed "
        f"FROM {results.place} WHERE {within} GROUP BY 1 ORDER BY 1",
    )
    failed = results.query(
        "SELECT newest.* FROM (SELECT max_by(struct(*), at) AS newest FROM "
        f"(SELECT at, concat_ws('.', table_schema, table_name) AS table, expectation, scope, success, unexpected, "
        f"evaluated, on_failure, begin_position, end_position FROM {results.place} WHERE {within}) "
        "GROUP BY table, expectation, scope) "
        f"WHERE NOT newest.success ORDER BY newest.at DESC LIMIT {MOST_FAILED}",
    )
    # That table also holds the values that differ: they are not selected.
    states = validator.query(
        f"SELECT state, count(*) AS rows FROM (SELECT max_by(state, updated_at) AS state FROM {validator.place} "
        "WHERE entry = 'error' GROUP BY id, schema_name, table_name, row_key) GROUP BY state",
    )
    return Checks(
        runs=tuple(ChecksRun(utc(row["at"]), row["passed"], row["failed"]) for row in runs),
        failed=tuple(map(_failed, failed)),
        validator={row["state"]: row["rows"] for row in states},
    )


def _failed(row: Any) -> FailedCheck:
    return FailedCheck(
        at=utc(row["at"]),
        table=row["table"],
        expectation=row["expectation"],
        unexpected=row["unexpected"],
        evaluated=row["evaluated"],
        on_failure=row["on_failure"],
        scope=row["scope"],
        begin=row["begin_position"],
        end=row["end_position"],
    )
