"""How fresh silver is under a steady load: `dmdelta run` beside a writer on the same machine.

    make bench-freshness
    python -m benchmarks.freshness      # 20 tables, 2,000 row changes per second; writes benchmarks/FRESHNESS-20.md
    python -m benchmarks.freshness --tables 200 --rows 400
    python -m benchmarks.freshness --seconds 120        # less exact: for development

The age of a change is the time from its commit at the source to the first commit of its silver table that contains it.
Bronze and the logs of the tables have both times, so only memory and CPU time are measured during the run. Changes of
the first minute are evaluated separately, because Java is cold. The load continues until the evaluated changes are in
silver; changes that are not in silver after TAIL_SECONDS count with their age at that time.
"""

import argparse
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.ages import Event
from benchmarks.commit_log import applying, ends, read_commits
from benchmarks.figures import Run, SchemaRows, Target, evaluate, lines_of
from benchmarks.load import Load, Writer
from benchmarks.page import measured_by, write_page
from benchmarks.usage import sampling
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.model.position import Position
from tests.support.background import in_background
from tests.support.servers import Server, running
from tests.support.task import Task, TaskProcess

START_SECONDS = 600.0
END_SECONDS = 60.0
TAIL_SECONDS = 90.0
POLL_SECONDS = 2.0
SOURCE = "bench"
SYNCER: dict[str, object] = {"target-freshness": "10s", "checkpoint-flush-interval": "30s"}
"""The defaults of a spec."""


TARGETS = {
    (20, 2_000): Target(p50=9.0, p95=16.0, first_p95=30.0, memory=3.5e9),
    (200, 400): Target(p95=90.0, ratio=1.5),
}
"""By tables and row changes per second."""


def observe(task: Task, writer: Writer, seconds: float) -> Run:
    """Run a task beside its writer."""
    folders = silver_folders(task, writer)
    with task.process() as run:
        await_tables(run, folders)
        with in_background(writer.write):
            return evaluated(run, task, writer, seconds)


def evaluated(run: TaskProcess, task: Task, writer: Writer, seconds: float) -> Run:
    """Observe a run beside a writer that writes, until its changes of so many seconds are in silver, and end it."""
    with sampling(run.pid) as usage:
        begin = datetime.now(timezone.utc)
        time.sleep(seconds)
        end = datetime.now(timezone.utc)
        samples = list(usage)
        file, offset, _ = task.server.position()
        await_position(silver_folders(task, writer), Position(1, file, offset), TAIL_SECONDS)
        tail = (datetime.now(timezone.utc) - end).total_seconds()
    assert run.poll() is None, run.log()
    run.terminate()
    assert run.wait(END_SECONDS) == 0, run.log()
    return Run(begin, end, samples, writer.written, writer.behind, tail)


def silver_folders(task: Task, writer: Writer) -> dict[str, Path]:
    """The folder of each silver table."""
    return {table: task.root / "silver" / task.database / table for table in writer.tables}


def await_tables(run: TaskProcess, folders: dict[str, Path]) -> None:
    """Wait until every silver table has its first rows.

    Raises:
        AssertionError: the run has ended, or that takes longer than START_SECONDS.
    """
    until = time.monotonic() + START_SECONDS
    while not all(applying(read_commits(folder)) for folder in folders.values()):
        assert run.poll() is None, run.log()
        assert time.monotonic() < until, f"not all tables have rows after {START_SECONDS} s:\n{run.log()}"
        time.sleep(POLL_SECONDS)


def await_position(folders: dict[str, Path], position: Position, seconds: float) -> None:
    """Wait until every silver table has reached a position, or for so many seconds."""
    until = time.monotonic() + seconds
    behind = dict.fromkeys(folders, 0)
    while behind and time.monotonic() < until:
        for table in list(behind):
            commits = read_commits(folders[table], behind[table])
            reached = ends(commits)
            if reached and reached[-1][0] >= position:
                del behind[table]
            elif commits:
                behind[table] = commits[-1].version
        time.sleep(POLL_SECONDS)


def events_of(spark: SparkSession, lakehouse: Lakehouse, run: Run) -> list[Event]:
    """The events of the evaluated time, according to bronze."""
    begin, end = (f"timestamp_micros({round(at.timestamp() * 1e6)})" for at in (run.begin, run.end))
    rows = spark.sql(
        f"""SELECT table_name, epoch, seq, committed_at, count(*) AS rows FROM {lakehouse.bronze}
        WHERE op IN ('insert', 'update', 'delete') AND committed_at >= {begin} AND committed_at < {end} GROUP BY ALL"""
    ).collect()
    return [
        Event(
            row["table_name"],
            (row["epoch"], row["seq"]),
            row["committed_at"].astimezone(timezone.utc),
            row["rows"],
        )
        for row in rows
    ]


def schema_rows_of(spark: SparkSession, lakehouse: Lakehouse) -> SchemaRows:
    """The structure rows in bronze; one per structure is enough."""
    row = spark.sql(
        f"""SELECT count(*) AS rows, count(DISTINCT source_id, schema_name, table_name, ddl) AS structures
        FROM {lakehouse.bronze} WHERE op = 'schema'"""
    ).collect()[0]
    return SchemaRows(row["rows"], row["structures"])


def measure(load: Load, seconds: float, folder: Path) -> list[str]:
    """Run the load and evaluate it; the lines of the page."""
    with running("mysql80", max_binlog_size="1G") as server:
        task, writer = prepare(server, load, folder)
        run = observe(task, writer, seconds)
    spark, lakehouse = open_session("bench"), Lakehouse(root=str(task.root))
    commits = {table: read_commits(place) for table, place in silver_folders(task, writer).items()}
    figures = evaluate(run, events_of(spark, lakehouse, run), commits, schema_rows_of(spark, lakehouse))
    return list(lines_of(run, figures, TARGETS.get((load.tables, load.rows), Target())))


def prepare(server: Server, load: Load, folder: Path) -> tuple[Task, Writer]:
    """A task over a new database with the load's tables."""
    database = server.fresh_database("bench")
    writer = Writer(server, database, load)
    writer.create()
    return Task(folder, server, database, SOURCE, SOURCE, jvm_options="", syncer=SYNCER), writer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000, help="row changes per second, over all tables")
    parser.add_argument("--seconds", type=int, default=300, help="the evaluated time, the first minute included")
    chosen = parser.parse_args()
    if chosen.seconds < 90:
        parser.error("the first minute is evaluated separately: at least 90 seconds are needed")
    load = Load(chosen.tables, chosen.rows)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(load, chosen.seconds, Path(folder))
    command = f"python -m benchmarks.freshness --tables {load.tables} --rows {load.rows} --seconds {chosen.seconds}"
    setting = f"{measured_by(command)}, MySQL 8.0, the writer and the run on the same machine."
    write_page(f"FRESHNESS-{load.tables}.md", "Freshness", setting, lines)


if __name__ == "__main__":
    main()
