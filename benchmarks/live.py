"""Live reads: how soon a new one has a change, beside a task and its writer; and what one costs beside silver.

    make bench-live
    python -m benchmarks.live                         # both, 20 tables; writes benchmarks/LIVE-20.md
    python -m benchmarks.live --tables 200 --rows 2000
    python -m benchmarks.live --part cost             # writes benchmarks/LIVE-COST.md

A change is visible when the first live read that has it is complete: its age contains the relay, landing, waiting for
the previous read, and the read. The reader has its own Spark, as that of a command, on the same cores.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession

from benchmarks.freshness import SOURCE, SYNCER, await_tables, silver_folders
from benchmarks.load import Load, Writer
from benchmarks.page import measured_by, write_page
from dmdelta.config import load_spec
from dmdelta.engine.live.tables import LiveTables
from dmdelta.lakehouse.session import SessionSettings, open_session, query_session
from tests.support.background import in_background
from tests.support.servers import Server, running
from tests.support.task import PASSWORD_VARIABLE, Task

WARM_SECONDS = 60
"""The first minute is not evaluated: the JVMs of the task and of the reader still compile."""
TARGET_P50, TARGET_P95, TARGET_RATIO = 2.0, 4.0, 1.5
ROWS, UPDATED, DELETED, INSERTED = 1_000_000, 50_000, 5_000, 5_000
ROUNDS = 7


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def freshness(load: Load, seconds: float, folder: Path) -> list[str]:
    """The ages of changes when a live read first has them, in a table."""
    with running("mysql80", max_binlog_size="1G") as server:
        database = server.fresh_database("bench")
        writer = Writer(server, database, load)
        writer.create()
        server.execute("CREATE TABLE probe (id INT PRIMARY KEY, at DOUBLE)", database=database)
        server.execute("INSERT INTO probe VALUES (0, 0)", database=database)
        live: dict[str, object] = {"live": {"landing-interval": "1s"}}
        task = Task(folder, server, database, SOURCE, SOURCE, settings=live, jvm_options="", syncer=SYNCER)
        with task.process() as run:
            await_tables(run, silver_folders(task, writer))
            with in_background(writer.write), patch.dict(os.environ, {PASSWORD_VARIABLE: server.password}):
                ages, reads = probe(server, task, seconds)
            assert run.poll() is None, run.log()
    p50, p95 = percentile(ages, 0.5), percentile(ages, 0.95)
    return [
        "| | measured | target |",
        "| --- | ---: | ---: |",
        f"| age of a change in a live read, p50 | {p50:.1f} s | {TARGET_P50:.0f} s |",
        f"| age of a change in a live read, p95 | {p95:.1f} s | {TARGET_P95:.0f} s |",
        f"| duration of a live read, p50 | {median(reads):.2f} s | |",
        f"| changes observed | {len(ages)} | |",
        f"| writer behind its plan, at most | {writer.behind:.1f} s | |",
    ]


def probe(server: Server, task: Task, seconds: float) -> tuple[list[float], list[float]]:
    """Insert a row, and read live until it is there, repeatedly; the ages, and the durations of the reads."""
    spark = open_session("bench live", SessionSettings(beside_run=True))
    tables, name = LiveTables.of(query_session(spark), load_spec(task.spec)), f"{task.database}.probe"
    ages, reads, number = list[float](), list[float](), 0
    warm = time.monotonic() + WARM_SECONDS
    while time.monotonic() < warm + seconds:
        number += 1
        server.execute(f"INSERT INTO probe VALUES ({number}, {time.time()})", database=task.database)
        committed = time.monotonic()
        while True:
            begin = time.monotonic()
            found = tables.read([name])[name].where(f"id = {number}").count()
            if begin > warm:
                reads.append(time.monotonic() - begin)
            if found:
                break
        if committed > warm:
            ages.append(time.monotonic() - committed)
        time.sleep(0.37)  # no multiple of the landing interval
    return ages, reads


def cost(folder: Path) -> list[str]:
    """The duration of a full read of a large table, from silver and live with a tail, in a table."""
    with running("mysql80", max_binlog_size="1G") as server:
        database = server.fresh_database("bench")
        task = Task(folder, server, database, SOURCE, SOURCE, jvm_options="")
        task.start_here()
        fill(server, database)
        task.catch_up()
        change(server, database)
        spark = query_session(open_session("bench live"))
        land(task)
        with patch.dict(os.environ, {PASSWORD_VARIABLE: server.password}):
            return compare(spark, task)


def fill(server: Server, database: str) -> None:
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    numbers = ", ".join(f"({digits}) AS t{place}" for place in range(6))
    number = " + ".join(f"t{place}.d * {10**place}" for place in range(6))
    server.execute(
        "CREATE TABLE big (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)",
        f"INSERT INTO big SELECT {number}, t0.d, repeat('c', 100), repeat('p', 50) FROM {numbers}",
        database=database,
    )


def change(server: Server, database: str) -> None:
    """The tail: spread over the table."""
    server.execute(
        f"UPDATE big SET k = k + 1 WHERE id % {ROWS // UPDATED} = 3",
        f"DELETE FROM big WHERE id % {ROWS // DELETED} = 7",
        f"INSERT INTO big SELECT id + {ROWS}, k, c, pad FROM big WHERE id % {ROWS // INSERTED} = 11",
        database=database,
    )


def land(task: Task) -> None:
    """Land what is new, without applying it."""
    from dmdelta.failpoint import CrashPoint

    task.arm(CrashPoint.SILVER_BEFORE_COMMIT)
    with task.process("--until-caught-up") as run:
        run.wait(300)


def compare(spark: SparkSession, task: Task) -> list[str]:
    """The durations of reads of silver, of the first live read of a session, and of the next one, in a table."""
    spec, name = load_spec(task.spec), f"{task.database}.big"
    plain, first, later = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        tables = LiveTables.of(spark, spec)
        silver = tables.task.lakehouse.silver(*next(key for key in tables.names() if key[1] == "big"))
        plain.append(timed(partial(spark.table, silver)))
        first.append(timed(partial(live_rows, tables, name)))
        later.append(timed(partial(live_rows, tables, name)))
    ((rows,),) = tables.read([name])[name].groupBy().count().collect()
    assert rows == ROWS - DELETED + INSERTED
    base, changes = median(plain[2:]), UPDATED + DELETED + INSERTED
    return [
        "| read of 1,000,000 rows, all columns | seconds, median | times silver |",
        "| --- | ---: | ---: |",
        f"| silver | {base:.2f} | |",
        *(
            f"| live, with {changes:,} changes in the tail, {which} read of a session "
            f"| {median(found[2:]):.2f} | {median(found[2:]) / base:.2f} |"
            for which, found in (("first", first), ("next", later))
        ),
        "",
        f"Target: a live read takes at most {TARGET_RATIO} times as long as a read of silver.",
    ]


def live_rows(tables: LiveTables, name: str) -> DataFrame:
    return tables.read([name])[name]


def timed(frame: Callable[[], DataFrame]) -> float:
    """The duration of planning and reading a frame."""
    begin = time.monotonic()
    rows = frame()
    rows.selectExpr("sum(hash(*))").collect()
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("freshness", "cost", "both"), default="both")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000, help="row changes per second, over all tables")
    parser.add_argument("--seconds", type=int, default=180, help="evaluated, after the first minute")
    chosen = parser.parse_args()
    load = Load(chosen.tables, chosen.rows)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        if chosen.part != "cost":
            command = f"python -m benchmarks.live --part freshness --tables {load.tables} --rows {load.rows}"
            where = (
                "MySQL 8.0; the writer, the run and the reader on the same machine. The first minute is not evaluated."
            )
            setting = f"{measured_by(command)}, {where}"
            write_page(
                f"LIVE-{load.tables}.md", "Live reads", setting, freshness(load, chosen.seconds, Path(folder, "a"))
            )
        if chosen.part != "freshness":
            setting = f"{measured_by('python -m benchmarks.live --part cost')}, MySQL 8.0."
            write_page("LIVE-COST.md", "Cost of live reads", setting, cost(Path(folder, "b")))


if __name__ == "__main__":
    main()
