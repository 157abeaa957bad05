"""Landing and applying small batches: decoded on the driver and applied from memory, against executors and bronze.

    make bench-memory                                # writes benchmarks/MEMORY.md
    python -m benchmarks.memory --tables 20 --changes 500

Both paths take the same log in turns, in one JVM, each to a lakehouse of its own; the page has the medians of the last
rounds, when Java has compiled the hot code.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.cpu import tree_cpu_seconds
from benchmarks.page import measured_by, write_page
from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import land, open_bronze, plan_landing
from dmdelta.bronze.progress import LandedRange
from dmdelta.changelog.batch_memory import MEMORY_BYTES, BatchMemory
from dmdelta.engine.apply.writer import ThreadSessions
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.model.schema import TableName
from dmdelta.rules import BlockAllowList, SourceRules
from dmdelta.segments import list_segments
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.request import ApplyRequest, ApplyResult, RowsPath
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.range_profile import TableEvents, tables_with_events
from tests.support.paths import on_executors
from tests.support.recording import record
from tests.support.servers import Server, running

THREADS = 3
ROUNDS, COUNTED = 6, 3
STAGES = ("landing", "profile", "applying")


@dataclass
class Way:
    """One path from the log to silver.

    Attributes:
        seconds, cpu: of each round, by stage.
        results: the last result of each table.
    """

    spark: SparkSession
    context: SilverContext
    name: str
    landed: LandedRange | None = None
    results: dict[TableName, ApplyResult] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {stage: [] for stage in STAGES})
    cpu: dict[str, list[float]] = field(default_factory=lambda: {stage: [] for stage in STAGES})

    def __post_init__(self) -> None:
        self.sessions, self.pool = ThreadSessions(self.spark), ThreadPoolExecutor(THREADS)
        open_bronze(self.spark, self.context.bronze, "bench")

    @property
    def newest(self) -> dict[str, str]:
        """The last round, by stage."""
        return {stage: f"{self.seconds[stage][-1]:.2f} s, {self.cpu[stage][-1]:.2f} CPU s" for stage in STAGES}

    @property
    def in_memory(self) -> bool:
        return self.name == RowsPath.MEMORY.value

    def take(self, archive: Path) -> None:
        """Land and apply what is new in an archive."""
        segments = list_segments(archive, "bench")
        while batch := plan_landing(segments, self.landed):
            with self._measured("landing"), nullcontext() if self.in_memory else on_executors():
                self.landed = landed = land(self.spark, self.context, batch, self.landed)
            with self._measured("profile"):
                tables = tables_with_events(self.spark, self.context, landed.begin, landed.end)
            with self._measured("applying"):
                results = list(self.pool.map(self._apply, tables, repeat(landed)))
            assert all(result.path is RowsPath(self.name) for result in results if result.row_count)
            self.results |= {(result.schema, result.table): result for result in results}
            self.context.memory.release(landed.end)

    def _apply(self, table: TableEvents, landed: LandedRange) -> ApplyResult:
        known = self.results.get(table.name)
        request = ApplyRequest(
            context=self.context,
            schema=table.schema,
            table=table.table,
            begin=landed.begin,
            end=landed.end,
            batch=landed.batch,
            known=known.structure if known else None,
            applied=known.commit.tag.version if known and known.commit else None,
            events=table,
        )
        return apply_table(self.sessions.own(), request)

    @contextmanager
    def _measured(self, stage: str) -> Iterator[None]:
        cpu, began = tree_cpu_seconds(except_for="mysqld"), time.perf_counter()
        yield
        self.seconds[stage].append(time.perf_counter() - began)
        self.cpu[stage].append(tree_cpu_seconds(except_for="mysqld") - cpu)


class Writer:
    """Changes tables in the proportions of an online workload: two inserts and two updates for each delete."""

    def __init__(self, server: Server, tables: int, changes: int) -> None:
        self.server, self.tables, self.changes = server, tables, changes
        self.database = server.fresh_database("memory")
        self._keys = [0] * tables
        self._random = random.Random(1)
        for number in range(tables):
            columns = "id BIGINT PRIMARY KEY, k INT NOT NULL, c VARCHAR(120), price DECIMAL(12,2), at DATETIME(6)"
            server.execute(f"CREATE TABLE t{number} ({columns})", database=self.database)

    def work(self) -> None:
        """So many changes of each table, in transactions over all tables."""
        with self.server.connect(database=self.database, autocommit=False) as connection, connection.cursor() as cursor:
            for _ in range(self.changes // 5):
                for number in range(self.tables):
                    self._change(cursor, number)
                connection.commit()

    def _change(self, cursor: Any, number: int) -> None:
        first = self._keys[number]
        self._keys[number] += 2
        for key in (first, first + 1):
            text = f"{self._random.random():.17f}" * 4
            cursor.execute(f"INSERT INTO t{number} VALUES (%s, %s, %s, 9.99, NOW(6))", (key, key, text))
        for key in (first, first + 1):
            cursor.execute(f"UPDATE t{number} SET k = k + 1 WHERE id = %s", (max(0, key - 50),))
        cursor.execute(f"DELETE FROM t{number} WHERE id = %s", (self._random.randrange(first + 1),))


def measure(tables: int, changes: int, rounds: int, folder: Path) -> list[Way]:
    """Both paths after all rounds."""
    spark = open_session("dmdelta bench memory")
    register(spark)
    with running("mysql80") as server:
        writer = Writer(server, tables, changes)
        rules = SourceRules("bench", BlockAllowList(do_dbs=(writer.database,)))
        plain = SilverContext(Lakehouse(root=str(folder / "bronze")), "bench", "bench", "run", "mysql", rules)
        memory = replace(plain, lakehouse=Lakehouse(root=str(folder / "memory")), memory=BatchMemory(MEMORY_BYTES))
        paths = [Way(spark, memory, "memory"), Way(spark, plain, "bronze")]
        for number in range(rounds):
            writer.work()
            archive = record(server, folder / "archive")
            for path in paths if number % 2 else reversed(paths):
                path.take(archive)
                print(number, path.name, path.newest, flush=True)
    spark.stop()
    return paths


def lines_of(paths: Sequence[Way], counted: int) -> Iterator[str]:
    """The table: medians of the counted rounds."""
    yield "| path | stage | s | CPU s |"
    yield "| --- | --- | ---: | ---: |"
    for path in paths:
        sums = [0.0, 0.0]
        for stage in STAGES:
            found = [median(values[stage][-counted:]) for values in (path.seconds, path.cpu)]
            sums = [total + value for total, value in zip(sums, found, strict=True)]
            yield f"| {path.name} | {stage} | {found[0]:.2f} | {found[1]:.2f} |"
        yield f"| **{path.name}** | **all** | **{sums[0]:.2f}** | **{sums[1]:.2f}** |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--changes", type=int, default=500, help="changes of each table in a round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        paths = measure(options.tables, options.changes, options.rounds, Path(folder))
    setting = (
        f"{measured_by('make bench-memory')}. One batch of {options.tables} tables, {options.changes} changes each, "
        f"{THREADS} threads; the median of the last {COUNTED} of {options.rounds} rounds."
    )
    write_page("MEMORY.md", "Batches in memory", setting, lines_of(paths, COUNTED))


if __name__ == "__main__":
    main()
