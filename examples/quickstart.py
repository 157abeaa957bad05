"""The quickstart as a program: run the task over the shipped binlogs, then look at what it made of them.

.venv/bin/python examples/quickstart.py

Each section of the output is one function below, and uses what a command of dmdelta uses: run, quality, verify and
report.
"""

import logging
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from pathlib import Path

from pyspark.sql import Row, SparkSession

from dmdelta.cli.progress import showing_run
from dmdelta.cli.render import console, table_of
from dmdelta.cli.verify import print_verified
from dmdelta.config import TaskSpec, load_spec
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.quality.command import QualityRequest, evaluate_tables, write_docs
from dmdelta.engine.quality.evaluation import TableResult
from dmdelta.engine.run.runner import RunOptions, run_task
from dmdelta.engine.task.task import place_of
from dmdelta.engine.verify.command import Verified, VerifyRequest, verify
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.logging import configure
from dmdelta.quality.results import Result
from dmdelta.report.gather import gather
from dmdelta.report.page import render_page

SPEC = Path(__file__).parents[1] / "pipelines" / "quickstart.yml"
SAMPLES = {
    ("shop", "orders"): "id, customer_id, status, total",
    ("shop", "events"): "id, kind, to_json(payload) AS payload",
    ("boutique", "customers"): "id, name, email",
}
GUARDED = {"orders": "total", "customers": "email"}
"""Tables of both databases with rows in quarantine, and the column to show of them."""
RANGE = QualityRequest(table="shop.orders", source="shop-mysql", begin="binlog.000002:4")
"""The rows of shop.orders that the shop's second binlog file wrote."""


def main(path: Path = SPEC) -> None:
    """Run, then show."""
    # A minute is too short for the JVM's optimizing compiler to pay for itself.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    spec = load_spec(path)
    run(spec)
    spark, lakehouse = SparkSession.builder.getOrCreate(), place_of(spec)
    # Many small queries, each of which one core plans: the evaluation and the verification run during the others.
    with ThreadPoolExecutor(2, thread_name_prefix="check") as pool:
        evaluated = pool.submit(evaluate_tables, spec, RANGE, lambda _: None)
        verified = pool.submit(verify, spec, VerifyRequest(), lambda _source, _at, _end: None)
        show_bronze(spark, lakehouse)
        show_silver(spark, lakehouse)
        show_quarantine(spark, lakehouse, spec.name)
        show_evaluation(evaluated.result())
        show_verification(verified.result())
    show_pages(spec, evaluated.result())


def run(spec: TaskSpec) -> None:
    """Relay, land and apply, as `dmdelta run SPEC --until-caught-up`."""
    heading("Run: two sources, from the binlog to silver")
    options = RunOptions(until_caught_up=True)
    if sys.stdout.isatty():
        stop = StopRequest()
        # What the log warns of is shown below: rows in quarantine.
        with showing_run(stop, level=logging.ERROR) as output:
            summary = run_task(spec, options, output.report, stop, output.follow)
    else:
        configure(level=logging.ERROR)
        summary = run_task(spec, options, lambda _: None)
    found = summary.progress
    if summary.is_idle:
        say("nothing is new, so nothing was written")
    else:
        tables, seconds = len(found.tables), found.seconds
        say(f"{found.applied_rows:,} row changes of {tables} tables landed and applied in {seconds:.0f} s")


def show_bronze(spark: SparkSession, lakehouse: Lakehouse) -> None:
    """Row changes by source and table."""
    heading("Bronze: every row change, in one table", lakehouse.bronze)
    counts = ", ".join(f"count_if(op = '{op}') AS {op}s" for op in ("insert", "update", "delete"))
    show(
        spark.sql(
            f"""SELECT source_id AS source, concat_ws('.', schema_name, table_name) AS table, {counts},
            count_if(op = 'ddl') AS statements
            FROM {lakehouse.bronze} WHERE table_name IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"""
        ).collect()
    )


def show_silver(spark: SparkSession, lakehouse: Lakehouse) -> None:
    """The first rows of some tables, and when the change that wrote each was committed at the source."""
    for (schema, table), columns in SAMPLES.items():
        silver = lakehouse.silver(schema, table)
        heading(f"Silver: {schema}.{table}, {spark.table(silver).count():,} rows", silver)
        show(
            spark.sql(f"SELECT {columns}, _dm_committed_at AS committed_at FROM {silver} ORDER BY id LIMIT 5").collect()
        )


def show_quarantine(spark: SparkSession, lakehouse: Lakehouse, task: str) -> None:
    """Rows that fail an expectation with `on-failure: quarantine`, and which."""
    heading("Quarantine: rows that break a contract of schemas/ are not in silver")
    rows = " UNION ALL ".join(
        f"SELECT {number} AS number, '{schema}.{table}' AS table, row_key AS key, image:{column}::string AS value, "
        f"reasons[0] AS reason FROM {lakehouse.metadata(f'{task}_quarantine__{schema}__{table}')}"
        for number, (schema, (table, column)) in enumerate(product(("shop", "boutique"), GUARDED.items()))
    )
    show(spark.sql(f"SELECT table, key, value, reason FROM ({rows}) ORDER BY number, key").collect())
    say("A row leaves the quarantine when its source corrects it, or with: dmdelta quality release")


def show_evaluation(found: Iterable[TableResult]) -> None:
    """What the contracts say of the rows that a range of the log wrote, as `dmdelta quality`."""
    results = [(".".join(one.subject.table), result) for one in found for result in one.results]
    shown = [(table, result) for table, result in results if is_of_interest(result)]
    heading(f"Evaluation: the rows of {RANGE.table} that the log wrote from {RANGE.begin} on")
    show(
        {
            "table": table,
            "expectation": result.expectation,
            "success": result.success,
            "evaluated": result.evaluated,
            "unexpected": result.unexpected,
            "failing rows": ", ".join(f"{key}={value}" for row in result.samples for key, value in row.items()),
        }
        for table, result in shown
    )
    say(f"{len(results) - len(shown)} more passed: columns, keys, values that are not NULL, versions, freshness")


def is_of_interest(result: Result) -> bool:
    """What a contract says of values and of other tables, and whatever fails."""
    told = result.expectation.startswith(("expect_", "foreign key"))
    return not result.success or (told and not result.expectation.startswith("expect_column_values_to_not_be_null"))


def show_verification(found: list[Verified]) -> None:
    """Every row event of both logs, read by mysql-replication, against bronze: as `dmdelta verify`."""
    heading("Verification: bronze against the logs, read by an independent decoder")
    print_verified(found)
    clean = all(one.is_clean for one in found)
    say("No difference: bronze is what the logs say" if clean else "Bronze differs from the logs: see above")


def show_pages(spec: TaskSpec, evaluated: list[TableResult]) -> None:
    """Where to read on: as `dmdelta report SPEC -o FILE` and `dmdelta quality SPEC --docs FOLDER`."""
    folder = Path(str(spec.lakehouse.root))
    report = folder / "report.html"
    report.write_text(render_page(gather(spec, timedelta(hours=24))), encoding="utf-8")
    heading("Pages to open in a browser")
    say(f"report of the task: {report}")
    say(f"Data Docs of the evaluation: {write_docs(folder / 'data-docs', evaluated)}")


def heading(text: str, place: str = "") -> None:
    """A line that names a section, and the table below it as SQL knows it."""
    console().print(f"\n{text}", style="bold", markup=False)
    if place:
        console().print(place, style="dim", markup=False)


def show(rows: Iterable[Row | dict[str, object]]) -> None:
    """Rows as a table."""
    console().print(table_of([row.asDict() if isinstance(row, Row) else row for row in rows]))


def say(text: str) -> None:
    """A line."""
    console().print(text, markup=False)


if __name__ == "__main__":
    main()
