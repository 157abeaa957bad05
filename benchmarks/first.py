"""How long a first-time user waits: 3 tables, 250 row changes per second, `task-mode: all`, from the process's start.

    make bench-first
    python -m benchmarks.first          # writes benchmarks/FIRST.md

A table is loaded when silver has the last rows of its snapshot. A change is visible when silver has the first commit
after that. Everything comes from the logs of the tables and from the log of the run.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.commit_log import Commit, applying, read_commits
from benchmarks.cpu import thread_seconds
from benchmarks.freshness import END_SECONDS, POLL_SECONDS, prepare, silver_folders
from benchmarks.load import Load
from benchmarks.page import measured_by, write_page
from benchmarks.usage import Usage, sampling
from tests.support.background import in_background
from tests.support.memory import command_of, descendants
from tests.support.servers import running
from tests.support.task import Task, TaskProcess

LOAD = Load(tables=3, rows=250, present=1_000)
TARGET_SECONDS = 30.0
WAIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Message:
    """A line of a run's log; `at` is in UTC."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Phase:
    """What happened for the first and for the last time, and how often; in seconds since the process's start."""

    what: str
    first: float
    last: float
    times: int

    def __str__(self) -> str:
        return f"| {self.what} | {self.first:.1f} s | {self.last:.1f} s | {self.times:,} |"


def loaded_at(commits: Sequence[Commit]) -> datetime | None:
    """When a silver table had the last rows of its snapshot; None before the first change after it."""
    own = applying(commits)
    first = next((number for number, commit in enumerate(own) if _of_log(commit)), None)
    return own[first - 1].at if first else None


def changed_at(commits: Sequence[Commit]) -> datetime | None:
    """When a silver table had the first change that is not of its snapshot."""
    return next((commit.at for commit in applying(commits) if _of_log(commit)), None)


def messages_of(log: str) -> Iterator[Message]:
    """The messages of dmdelta in a run's log; other lines are not JSON."""
    for line in log.splitlines():
        if line.startswith("{"):
            fields = json.loads(line)
            if "msg" in fields and "ts" in fields:
                yield Message(datetime.fromisoformat(fields["ts"]), fields["msg"])


def phases(began: datetime, messages: Sequence[Message], tables: Mapping[str, Sequence[Commit]]) -> list[Phase]:
    """What happened, in the order of its first occurrence.

    Args:
        tables: the commits of each table, by its name.
    """
    times: dict[str, list[float]] = {}
    for message in messages:
        times.setdefault(message.text, []).append((message.at - began).total_seconds())
    for table, commits in tables.items():
        times[f"commits of {table}"] = [(commit.at - began).total_seconds() for commit in commits]
    found = [Phase(what, min(some), max(some), len(some)) for what, some in times.items() if some]
    return sorted(found, key=lambda phase: phase.first)


def _of_log(commit: Commit) -> bool:
    """Whether a commit ends in the server's log, after changes of it."""
    return commit.tag is not None and commit.tag.end.chunk is None and commit.tag.begin < commit.tag.end


@dataclass(frozen=True, slots=True)
class First:
    """A first run.

    Attributes:
        silver, others: the commits of tables, by name.
        threads: CPU seconds of the JVM by kind of thread.
    """

    began: datetime
    messages: Sequence[Message]
    silver: Mapping[str, Sequence[Commit]]
    others: Mapping[str, Sequence[Commit]]
    usage: Usage
    threads: Mapping[str, float]


def observe(task: Task, folders: Mapping[str, Path]) -> First:
    """Run until every silver table has a change of the log.

    Raises:
        AssertionError: that takes longer than WAIT_SECONDS.
    """
    began = datetime.now(timezone.utc)
    with task.process() as run, sampling(run.pid) as usage:
        silver = await_changes(run, folders)
        samples = list(usage)
        (jvm,) = (pid for pid in descendants(run.pid) if command_of(pid).startswith("java"))
        threads = thread_seconds(jvm)
        run.terminate()
        run.wait(END_SECONDS)
        log = run.whole_log()
    places = {
        "bronze": task.root / "bronze",
        **{f"dm_meta.{one.name}": one for one in (task.root / "dm_meta").iterdir()},
    }
    others = {name: read_commits(place) for name, place in places.items()}
    return First(began, list(messages_of(log)), silver, others, samples[-1], threads)


def await_changes(run: TaskProcess, folders: Mapping[str, Path]) -> dict[str, list[Commit]]:
    """The commits of the silver tables, once each has a change of the log."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        commits = {table: read_commits(folder) for table, folder in folders.items()}
        if all(map(changed_at, commits.values())):
            return commits
        assert run.poll() is None, run.log()
        assert time.monotonic() < until, f"no change in silver after {WAIT_SECONDS} s:\n{run.log()}"
        time.sleep(POLL_SECONDS)


def lines_of(first: First) -> Iterator[str]:
    """The page's tables."""
    loaded, changed = (
        sorted((at - first.began).total_seconds() for at in map(when, first.silver.values()) if at is not None)
        for when in (loaded_at, changed_at)
    )
    yield "| from the process's start | seconds | target |"
    yield "| --- | ---: | ---: |"
    yield f"| the first table is loaded | {loaded[0]:.1f} | |"
    yield f"| all tables are loaded | {loaded[-1]:.1f} | ≤ {TARGET_SECONDS:.0f} |"
    yield f"| the first change of the log is visible | {changed[0]:.1f} | ≤ {TARGET_SECONDS:.0f} |"
    yield f"| every table has a change of the log | {changed[-1]:.1f} | |"
    yield ""
    yield "| messages of the log, commits of tables | first | last | number |"
    yield "| --- | ---: | ---: | ---: |"
    yield from map(str, phases(first.began, first.messages, {**first.silver, **first.others}))
    yield ""
    usage = first.usage
    yield f"CPU until then: JVM {usage.java_cpu:.0f} s, Python {usage.python_cpu:.0f} s."
    kinds = ", ".join(f"{kind} {seconds:.0f} s" for kind, seconds in first.threads.items())
    yield f"Of the JVM's: {kinds}; the driver plans and commits."
    yield f"Memory (PSS): {usage.bytes / 1e9:.2f} GB. Load average: {os.getloadavg()[0]:.1f}."


def measure(folder: Path) -> list[str]:
    """A first run beside a writer; the lines of the page."""
    with running("mysql80", max_binlog_size="1G") as server:
        task, writer = prepare(server, LOAD, folder)
        task.mode = "all"
        with in_background(writer.write):
            first = observe(task, silver_folders(task, writer))
    return list(lines_of(first))


def main() -> None:
    argparse.ArgumentParser().parse_args()
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(Path(folder))
    setting = (
        f"{measured_by('python -m benchmarks.first')}, MySQL 8.0, the writer and the run on the same machine,\n"
        f"{LOAD.tables} tables with {LOAD.present:,} rows each, {LOAD.rows} row changes per second, `task-mode: all`."
    )
    write_page("FIRST.md", "First run", setting, lines)


if __name__ == "__main__":
    main()
