"""How long commands take from a cold shell, next to a task under load; and without a task.

    make bench-commands                 # 20 tables, 2,000 row changes per second; writes benchmarks/COMMANDS.md
    python -m benchmarks.commands --tables 4 --rows 100 --runs 2    # less exact: for development
    python -m benchmarks.commands --queries --runs 3    # only commands that query rows; prints the lines

Each command is a process of its own, as an operator starts it; its time is that from its start to its end. `binlog`,
`snapshot` and `update` include the wait until the request is in effect, `resume` that until the task runs. `pause` and
`stop` have no target: they also wait until all tables are at one position. Commands that query rows start Spark, and
take minutes beside a busy task; `--queries` measures when they begin to work (`benchmarks/starts.py`).
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.freshness import END_SECONDS, await_tables, prepare, silver_folders
from benchmarks.load import Load
from benchmarks.page import measured_by, write_page
from benchmarks.starts import Starts
from tests.support.background import in_background
from tests.support.servers import running
from tests.support.task import Task

SETTLE_SECONDS = 20.0
"""From the start of the load to the first measured command."""
COMMAND_SECONDS = 120.0
RUNNING_SECONDS, IDLE_SECONDS = 1.0, 2.0
"""The targets of the 95th percentile, next to a running task and without one."""
RARE = 4
"""Of so many runs, one measures the commands that stop or restart the sources."""
NOWHERE = "--position=99/binlog.000001:4"
"""Of no statement."""
READING: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("status", "--tables"),
    ("status", "--json"),
    ("checkpoint", "show"),
    ("relay", "status"),
    ("validate", "status"),
    ("binlog", "list"),
    ("shard-ddl-lock", "list"),
)
HEAD = ["| command | runs | p50 s | p95 s | max s | target s |", "| --- | ---: | ---: | ---: | ---: | ---: |"]


@dataclass
class Timings:
    """The seconds that each command took, from its start to its end.

    Attributes:
        target: the limit of the 95th percentile; None: none.
    """

    task: Task
    target: float | None
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, command: Sequence[str], *options: str) -> None:
        """Run a command once.

        Args:
            command: its words and flags, which name its line of the table.
            options: further flags.

        Raises:
            SystemExit: it failed.
        """
        words = [word for word in command if not word.startswith("-")]
        flags = [word for word in command if word.startswith("-")]
        program = str(Path(sys.executable).with_name("dmdelta"))
        with self.task.environment():
            began = time.perf_counter()
            done = subprocess.run(
                [program, *words, str(self.task.spec), *flags, *options],
                capture_output=True,
                text=True,
                check=False,
                timeout=COMMAND_SECONDS,
            )
            took = time.perf_counter() - began
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        self.seconds.setdefault(" ".join(command), []).append(took)

    def lines(self) -> Iterator[str]:
        """The lines of a table."""
        for command, took in self.seconds.items():
            p50, p95 = percentile(took, 0.5), percentile(took, 0.95)
            target = f"≤ {self.target:g}{'' if p95 <= self.target else ', missed'}" if self.target is not None else ""
            yield f"| `{command}` | {len(took)} | {p50:.2f} | {p95:.2f} | {max(took):.2f} | {target} |"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def measure_running(timings: Timings, others: Timings, runs: int) -> None:
    """Measure the commands to a running task; those that stop or restart its sources come last.

    Args:
        others: receives those without a target.
    """
    task, tables = timings.task, timings.task.server.query("SHOW TABLES", database=timings.task.database)
    for _ in range(runs):
        for command in READING:
            timings.measure(command)
        timings.measure(("update",))
    for number in range(max(1, runs // RARE)):
        others.measure(("pause",))
        timings.measure(("resume",))
        timings.measure(("binlog", "skip"), NOWHERE)
        timings.measure(("binlog", "revert"), NOWHERE)
        timings.measure(("snapshot",), f"--table={task.database}.{tables[number % len(tables)][0]}")


def measure(load: Load, runs: int, idle_runs: int, folder: Path, *, only_queries: bool) -> Iterator[str]:
    """Run a task under load and measure commands next to it, then without it; the lines of the page."""
    with running("mysql80", max_binlog_size="1G") as server:
        task, writer = prepare(server, load, folder)
        task.settings["validator"] = {"mode": "fast"}
        busy, others, idle = Timings(task, RUNNING_SECONDS), Timings(task, None), Timings(task, IDLE_SECONDS)
        starts, idle_starts = Starts(task), Starts(task)
        with task.process() as run:
            await_tables(run, silver_folders(task, writer))
            with in_background(writer.write):
                time.sleep(SETTLE_SECONDS)
                if only_queries:
                    starts.measure_all(runs)
                else:
                    measure_running(busy, others, runs)
                others.measure(("stop",))
            run.wait(END_SECONDS)
        for _ in range(0 if only_queries else idle_runs):
            for command in READING:
                idle.measure(command)
        if only_queries and idle_runs:
            task.catch_up()
            idle_starts.measure_all(runs)
    if only_queries:
        yield from (*starts.lines(), "", "Without a task:", "", *idle_starts.lines())
        return
    yield from (*HEAD, *busy.lines(), *others.lines())
    if idle_runs:
        yield from ("", "Without a task:", "", *HEAD, *idle.lines())
    yield ""
    yield f"The writer was at most {writer.behind:.1f} s late. Load average: {os.getloadavg()[0]:.1f}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000, help="row changes per second, over all tables")
    parser.add_argument("--runs", type=int, default=20, help="how often each command is measured")
    parser.add_argument("--idle-runs", type=int, default=5, help="the same without a task; 0: not measured")
    parser.add_argument("--queries", action="store_true", help="measure only commands that query rows, and print")
    chosen = parser.parse_args()
    load = Load(chosen.tables, chosen.rows)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = list(measure(load, chosen.runs, chosen.idle_runs, Path(folder), only_queries=chosen.queries))
    if chosen.queries:
        print(*lines, sep="\n")
        return
    command = f"python -m benchmarks.commands --tables {load.tables} --rows {load.rows} --runs {chosen.runs}"
    setting = (
        f"{measured_by(command)}, MySQL 8.0. The writer, the task\nand the commands share the machine: {load.tables} "
        f"tables, {load.rows:,} row changes per second. Each command is a process of its own."
    )
    write_page("COMMANDS.md", "Commands", setting, lines)


if __name__ == "__main__":
    main()
