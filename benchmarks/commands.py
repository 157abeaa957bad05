"""How long commands take from a cold shell, next to a task under load; and without a task.

    make bench-commands                                   # 20 tables, 2,000 row changes a second; writes COMMANDS.md
    python -m benchmarks.commands --tables 4 --rows 100 --runs 3

Each command is a process of its own, as an operator starts it. `pause` includes the wait until the ranges in progress
have ended, `binlog`, `shard-ddl-lock unlock` and `snapshot` the commit of the request to dm_meta.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.freshness import Load, Writer
from benchmarks.page import measured_by, write_page
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ReadStatus
from dmdelta.engine.control.socket_client import ask_running
from tests.support.servers import running
from tests.support.task import Task

START_SECONDS = 300.0
SETTLE_SECONDS = 30.0
"""From the start of the load to the first measured command."""
COMMAND_SECONDS = 300.0
NOWHERE = "--position=99/binlog.000001:4"
"""Of no statement."""
READING = (
    ("status",),
    ("status", "--tables"),
    ("status", "--json"),
    ("checkpoint", "show"),
    ("relay", "status"),
    ("validate", "status"),
    ("binlog", "list"),
    ("shard-ddl-lock", "list"),
)
HEAD = ["| command | p50 s | p95 s | max s |", "| --- | ---: | ---: | ---: |"]


@dataclass
class Timings:
    """The seconds that each command took, from its start to its end."""

    task: Task
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, command: Sequence[str], *options: str) -> None:
        program = str(Path(sys.executable).with_name("dmdelta"))
        arguments = [word for word in command if not word.startswith("-")]
        flags = [word for word in command if word.startswith("-")]
        with self.task.environment():
            began = time.perf_counter()
            done = subprocess.run(
                [program, *arguments, str(self.task.spec), *flags, *options],
                capture_output=True,
                text=True,
                check=False,
                timeout=COMMAND_SECONDS,
            )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        self.seconds.setdefault(" ".join(command), []).append(time.perf_counter() - began)

    def lines(self) -> list[str]:
        return [
            f"| `{command}` | {at_share(took, 0.5):.2f} | {at_share(took, 0.95):.2f} | {max(took):.2f} |"
            for command, took in self.seconds.items()
        ]


def at_share(values: Sequence[float], share: float) -> float:
    """The value that so many of the values are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure_running(timings: Timings, runs: int) -> None:
    """Every command, `runs` times; those that restart or pause the task come last."""
    task = timings.task
    for _ in range(runs):
        for command in READING:
            timings.measure(command)
        timings.measure(("update",))
    for _ in range(runs):
        timings.measure(("snapshot",), f"--table={task.database}.t0")
        timings.measure(("pause",))
        timings.measure(("resume",))
        timings.measure(("binlog", "skip"), NOWHERE)
        timings.measure(("binlog", "revert"), NOWHERE)
    timings.measure(("stop",))


def wait_until_running(task: Task) -> None:
    """Wait until the task has applied something."""
    with task.environment():
        spec, deadline = load_spec(task.spec), time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        reply = ask_running(spec, ReadStatus())
        if reply is not None and any(source["applied_to"] for source in reply.result["sources"]):
            return
        time.sleep(1)
    raise SystemExit("the task does not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000, help="row changes a second, over all tables")
    parser.add_argument("--runs", type=int, default=20, help="how often each command is measured")
    parser.add_argument("--idle-runs", type=int, default=2, help="the same without a task; 0: not measured")
    chosen = parser.parse_args()
    load = Load(chosen.tables, chosen.rows, 24 * 3600)
    with tempfile.TemporaryDirectory() as folder, running("mysql80") as server:
        database = server.fresh_database("commands")
        writer = Writer(server, database, load)
        writer.create()
        task = Task(Path(folder), server, database, jvm_options="")
        task.settings["validator"] = {"mode": "fast"}
        task.syncer |= {"target-freshness": "10s", "checkpoint-flush-interval": "30s"}
        task.start_here()
        busy, idle = Timings(task), Timings(task)
        with task.process() as run:
            threading.Thread(target=writer.write, daemon=True).start()
            wait_until_running(task)
            time.sleep(SETTLE_SECONDS)
            measure_running(busy, chosen.runs)
            run.wait(60)
        for _ in range(chosen.idle_runs):
            for command in READING:
                idle.measure(command)
        lines = [*HEAD, *busy.lines()]
        if chosen.idle_runs:
            lines += ["", "Without a task:", "", *HEAD, *idle.lines()]
        setting = (
            f"{measured_by('python -m benchmarks.commands')}, {load.tables} tables, {load.rows:,} row changes a "
            f"second, {chosen.runs} runs of each command. Task, server and commands share the machine."
        )
        write_page("COMMANDS.md", "Commands", setting, lines)


if __name__ == "__main__":
    main()
