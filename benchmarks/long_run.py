"""Whether a task stays as fast as it was, and its tables as small: many small batches, one after the other.

    python -m benchmarks.long_run                   # 10,000 landed batches, hours; writes benchmarks/LONG_RUN.md
    python -m benchmarks.long_run --batches 1000

A day of a task that lands every 9 seconds, without the pauses: batches are landed as fast as they come, and tables are
cared for meanwhile. What each phase took is what `/metrics` of the run says, a hundred batches at a time.
"""

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.freshness import END_SECONDS, await_tables, silver_folders
from benchmarks.load import Load, Writer
from benchmarks.page import measured_by, write_page
from benchmarks.usage import usage_below
from dmdelta.lakehouse.session import open_session
from tests.support.background import in_background
from tests.support.servers import running
from tests.support.task import Task, TaskProcess

TABLES = 3
ROWS_A_SECOND = 40
HUNDRED = 100
LEAST = 4 * HUNDRED
"""The first hundred warms Java up."""
PHASES = ("land", "apply", "flush")
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Moment:
    """A run at some time: batches that have landed, (times, seconds) by phase, and memory (PSS of all, bytes)."""

    batches: int
    spent: dict[str, tuple[float, float]]
    memory: int

    def since(self, before: "Moment", phase: str) -> float:
        """What a phase took each time since then, in seconds."""
        times, seconds = (now - then for now, then in zip(self.spent[phase], before.spent[phase], strict=True))
        return seconds / times if times else float("nan")


def look(run: TaskProcess) -> Moment:
    figures = run.figures()
    found = {(one.labels["phase"], one.name.rpartition("_")[2]): one.value for one in figures["dmdelta_batch_seconds"]}
    spent = {phase: (found.get((phase, "count"), 0.0), found.get((phase, "sum"), 0.0)) for phase in PHASES}
    return Moment(int(spent["land"][0]), spent, usage_below(run.pid).bytes)


def follow(run: TaskProcess, batches: int) -> list[Moment]:
    """A moment each hundred batches, from the first batch on."""
    moments = [look(run)]
    while moments[-1].batches < batches:
        assert run.poll() is None, run.log()
        time.sleep(POLL_SECONDS)
        now = look(run)
        if now.batches >= moments[-1].batches + HUNDRED:
            moments.append(now)
            print(row_of(moments[-2], now), flush=True)
    return moments


def row_of(before: Moment, now: Moment) -> str:
    took = " | ".join(f"{now.since(before, phase) * 1000:,.0f} ms" for phase in PHASES)
    return f"| {before.batches:,} to {now.batches:,} | {took} | {now.memory / 1e9:.2f} GB |"


def lines_of(moments: Sequence[Moment]) -> Iterator[str]:
    """The first hundred batches behind the warm-up, those in the middle and the last, and what became of the phases."""
    yield "| batches | land | apply | flush | memory (PSS) |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    pairs = list(itertools.pairwise(moments[1:]))  # Java is warm by then
    for before, now in {id(pair): pair for pair in (pairs[0], pairs[len(pairs) // 2], pairs[-1])}.values():
        yield row_of(before, now)
    first, last = pairs[0], pairs[-1]
    yield ""
    for phase in PHASES:
        ratio = last[1].since(last[0], phase) / first[1].since(first[0], phase)
        yield f"- {phase}: the last hundred took {ratio:.2f} times as long as the first"


def files_of(spark: SparkSession, root: Path) -> Iterator[str]:
    """How many files each table has at the end, its log left out."""
    for log in sorted(root.rglob("_delta_log")):
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{log.parent}`").collect()[0]
        yield f"- {log.parent.relative_to(root)}: {detail['numFiles']:,} files, {detail['sizeInBytes'] / 1e6:,.1f} MB"


def measure(batches: int, folder: Path) -> list[str]:
    with running("mysql80", max_binlog_size="1G") as server:
        database = server.fresh_database("long")
        writer = Writer(server, database, Load(TABLES, ROWS_A_SECOND))
        writer.create()
        task = Task(folder, server, database, "bench", "bench", jvm_options="")
        task.settings["metrics"] = {"port": 0}
        with task.process() as run, in_background(writer.write):
            await_tables(run, silver_folders(task, writer))
            moments = follow(run, batches)
            run.terminate()
            run.wait(END_SECONDS)
            log = run.whole_log()
    cared = f"So often a table was compacted or vacuumed: {log.count('maintenance finished')}. Files at the end:"
    return [*lines_of(moments), "", cared, "", *files_of(open_session("bench"), task.root)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=10_000, help="so many are landed")
    batches = parser.parse_args().batches
    if batches < LEAST:
        parser.error(f"fewer than {LEAST} batches do not tell the first from the last hundred")
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(batches, Path(folder))
    command = f"python -m benchmarks.long_run --batches {batches}"
    setting = f"{measured_by(command)}, {TABLES} tables, MySQL 8.0, the writer and the run on the same machine."
    write_page("LONG_RUN.md", "A long run", setting, lines)


if __name__ == "__main__":
    main()
