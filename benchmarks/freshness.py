"""How fresh silver is under a steady load, and whether that stays so: `dmdelta run` beside writers on the same machine.

    python -m benchmarks.freshness      # 20 tables, 2,000 row changes a second; writes benchmarks/FRESHNESS-20.md
    python -m benchmarks.freshness --tables 200 --rows 400 --seconds 300

A row's age is that of its change, from the source's commit to the first commit of its silver table that has it: bronze
and the tables' own histories tell it of every row afterwards, so nothing is measured while it runs but memory.
"""

import argparse
import bisect
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.page import measured_by, write_page
from dmdelta.lakehouse.history import OwnCommit, own_commits
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.silver.table.target import silver_app
from tests.support.memory import processes_below
from tests.support.servers import Server, running
from tests.support.task import Task

ROWS_A_TRANSACTION = 10
START_SECONDS = 300.0
END_SECONDS = 60.0
SAMPLE_SECONDS = 5.0
LAST_SECONDS = 15.0
SOURCE = "bench"
SYNCER: dict[str, object] = {"target-freshness": "10s", "checkpoint-flush-interval": "30s"}
"""As a spec is that says nothing of it."""


@dataclass(frozen=True)
class Load:
    """What is written: tables, row changes a second over all of them, and for how long."""

    tables: int
    rows: int
    seconds: int


@dataclass(frozen=True)
class Aged:
    """Rows of one commit of a silver table: when it was made, and how old they were then, in seconds."""

    at: datetime
    table: str
    age: float
    rows: int


class Writer:
    """Inserts, updates and deletes, five, four and one of ten, on tables at random, at a steady rate."""

    def __init__(self, server: Server, database: str, load: Load) -> None:
        self.server, self.database, self.load = server, database, load
        self.written = 0
        self._next = [1] * load.tables

    def create(self) -> None:
        columns = "(id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"
        self.server.execute(
            *(f"CREATE TABLE t{n} {columns}" for n in range(self.load.tables)),
            *(f"INSERT INTO t{n} VALUES (0, 0, '', '')" for n in range(self.load.tables)),
            database=self.database,
        )

    def write(self) -> None:
        """For so long as the load says; later where the server does not keep up."""
        rng, every = random.Random(1), ROWS_A_TRANSACTION / self.load.rows
        began = time.monotonic()
        with self.server.connect(database=self.database, autocommit=False) as connection, connection.cursor() as cursor:
            for number in range(round(self.load.seconds / every)):
                time.sleep(max(0.0, began + number * every - time.monotonic()))
                for statement in self._transaction(rng):
                    cursor.execute(statement)
                connection.commit()
                self.written += ROWS_A_TRANSACTION

    def _transaction(self, rng: random.Random) -> Iterator[str]:
        table = rng.randrange(self.load.tables)
        first = self._next[table]
        self._next[table] += 5
        text = f"{rng.random():.18f}" * 5
        yield f"INSERT INTO t{table} VALUES " + ", ".join(f"({first + n}, {n}, '{text}', 'p')" for n in range(5))
        for n in range(4):
            yield f"UPDATE t{table} SET k = k + 1, c = '{text}' WHERE id = {first + n}"
        yield f"DELETE FROM t{table} WHERE id = {first + 4}"


class Memory(threading.Thread):
    """What the processes of a run take together, every few seconds, in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.samples: list[int] = []
        self._pid = pid

    def run(self) -> None:
        while found := processes_below(self._pid):
            self.samples.append(sum(found.values()))
            time.sleep(SAMPLE_SECONDS)


def ages(spark: SparkSession, lakehouse: Lakehouse, database: str, since: datetime) -> list[Aged]:
    """Of every row change that was committed since then and is in silver."""
    rows = spark.sql(
        f"""SELECT table_name, epoch, seq, committed_at, count(*) AS rows FROM {lakehouse.bronze}
        WHERE schema_name = '{database}' AND op IN ('insert', 'update', 'delete')
        AND committed_at >= timestamp_micros({int(since.timestamp() * 1e6)}) GROUP BY ALL"""
    ).collect()
    commits: dict[str, list[OwnCommit]] = {}
    for table in {row["table_name"] for row in rows}:
        app = silver_app(SOURCE, SOURCE, database, table)
        commits[table] = sorted(own_commits(spark, lakehouse.silver(database, table), app), key=lambda one: one.version)
    found = []
    for row in rows:
        own = commits[row["table_name"]]
        first = bisect.bisect_right(
            own, (row["epoch"], row["seq"]), key=lambda one: (one.tag.end.epoch, one.tag.end.seq)
        )
        if first < len(own):
            at = own[first].at
            age = (at - row["committed_at"].astimezone(timezone.utc)).total_seconds()
            found.append(Aged(at, row["table_name"], age, row["rows"]))
    return found


def at_share(aged: Sequence[Aged], share: float) -> float:
    """The age that so many of the rows are not above."""
    ordered = sorted(aged, key=lambda one: one.age)
    wanted, seen = share * sum(one.rows for one in ordered), 0
    for one in ordered:
        seen += one.rows
        if seen >= wanted:
            return one.age
    return float("nan")


def lines_of(aged: Sequence[Aged], began: datetime, load: Load) -> Iterator[str]:
    """Of the whole time, of its first minute and of its last, and of the table that is worst off."""
    yield "| rows | number | p50 | p95 | oldest |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    minute, end = timedelta(minutes=1), began + timedelta(seconds=load.seconds)
    worst = max({one.table for one in aged}, key=lambda table: at_share([o for o in aged if o.table == table], 0.95))
    for what, some in (
        ("all", aged),
        ("first minute", [one for one in aged if one.at < began + minute]),
        ("last minute", [one for one in aged if one.at >= end - minute]),
        (f"of the table that is worst off ({worst})", [one for one in aged if one.table == worst]),
    ):
        number, oldest = sum(one.rows for one in some), max((one.age for one in some), default=float("nan"))
        yield f"| {what} | {number:,} | {at_share(some, 0.5):.1f} s | {at_share(some, 0.95):.1f} s | {oldest:.1f} s |"


def measure(load: Load, folder: Path) -> list[str]:
    with running("mysql80", max_binlog_size="1G") as server:
        database = server.fresh_database("bench")
        writer = Writer(server, database, load)
        writer.create()
        task = Task(folder, server, database, SOURCE, SOURCE, jvm_options="", syncer=SYNCER)
        with task.process() as run:
            run.wait_for('"range applied"', START_SECONDS)
            memory = Memory(run.pid)
            memory.start()
            began = datetime.now(timezone.utc)
            writer.write()
            late = (datetime.now(timezone.utc) - began).total_seconds() - load.seconds
            time.sleep(LAST_SECONDS)
            run.terminate()
            run.wait(END_SECONDS)
    spark, lakehouse = open_session("bench"), Lakehouse(root=str(folder / "lake"))
    aged = ages(spark, lakehouse, database, began)
    commits, files = counts(spark, lakehouse, database, load)
    third, end, most = (memory.samples[len(memory.samples) // 3], memory.samples[-1], max(memory.samples))
    there = sum(one.rows for one in aged)
    return [
        *lines_of(aged, began, load),
        "",
        f"{writer.written:,} row changes were written ({late:.0f} s late), {there:,} of them are in silver.",
        f"Commits of silver: {commits:,}; its files at the end: {files:,} in {load.tables} tables.",
        f"The run's processes took together {third / 1e9:.2f} GB after a third of the time, {end / 1e9:.2f} at its end",
        f"and {most / 1e9:.2f} GB at most.",
    ]


def counts(spark: SparkSession, lakehouse: Lakehouse, database: str, load: Load) -> tuple[int, int]:
    """Commits and files of all silver tables."""
    commits = files = 0
    for number in range(load.tables):
        table = lakehouse.silver(database, f"t{number}")
        commits += spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"]
        files += spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["numFiles"]
    return commits, files


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000, help="row changes a second, over all tables")
    parser.add_argument("--seconds", type=int, default=180)
    asked = parser.parse_args()
    load = Load(asked.tables, asked.rows, asked.seconds)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(load, Path(folder))
    command = f"python -m benchmarks.freshness --tables {load.tables} --rows {load.rows} --seconds {load.seconds}"
    setting = f"{measured_by(command)}, MySQL 8.0, the writer and the run on the same machine."
    write_page(f"FRESHNESS-{load.tables}.md", "Freshness", setting, lines)


if __name__ == "__main__":
    main()
