"""Parts of a long run: 200 tables for half an hour, and a schema of 5,000 tables of which one is busy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from benchmarks.ages import MINUTE, Freshness, ages_of, freshness_of
from benchmarks.commit_log import Commit, applying, ends, read_commits
from benchmarks.figures import Run
from benchmarks.freshness import SOURCE, SYNCER, await_tables, evaluated, events_of, observe, prepare, silver_folders
from benchmarks.load import Load, Writer
from benchmarks.long_figures import TARGET, Compared
from benchmarks.usage import memory_of
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from tests.support.background import in_background
from tests.support.servers import running
from tests.support.task import Task

TABLES, ROWS = 200, 400
WARM, SPAN = 5 * MINUTE, 5 * MINUTE
"""The first and the last minutes that are compared; the first begin when Java is warm."""
LEAST_MINUTES = 15
MOST_P95 = 90.0
"""Seconds, as in FRESHNESS-200.md."""
BUSY_ROWS, BUSY_SECONDS = 100, 180.0
STATEMENTS = 100


def many_tables(minutes: int, folder: Path) -> list[str]:
    """400 changes per second on 200 tables; the lines of the section."""
    with running("mysql80", max_binlog_size="1G") as server:
        task, writer = prepare(server, Load(TABLES, ROWS), folder)
        run = observe(task, writer, minutes * 60.0)
    commits = commits_of(task, writer)
    spans = [(run.begin + WARM, run.begin + WARM + SPAN), (run.end - SPAN, run.end)]
    found = [freshness(task, run, commits, *span) for span in spans]
    memory = [memory_between(run, *span) for span in spans]
    return list(tables_section(run, found, memory))


def tables_section(run: Run, found: Sequence[Freshness], memory: Sequence[float]) -> Iterator[str]:
    """The first and the last minutes: ages and memory (bytes)."""
    first, last = found
    yield f"{TABLES} tables, {ROWS} row changes per second, {(run.end - run.begin) / MINUTE:.0f} minutes."
    yield ""
    yield "| what | first five minutes | last five minutes | ratio | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for what, before, now in (("p50", first.p50, last.p50), ("p95", first.p95, last.p95)):
        yield ratio_row(f"age of a change in silver, {what}", before, now, f"{before:.1f} s | {now:.1f} s")
    begin, end = memory
    yield ratio_row("memory (PSS), median", begin, end, f"{begin / 1e9:.2f} GB | {end / 1e9:.2f} GB")
    verdict = "ok" if last.p95 <= MOST_P95 else "too slow"
    yield f"| age of a change in silver, p95, at the end | | {last.p95:.1f} s | | ≤ {MOST_P95:.0f} s | {verdict} |"
    missing = first.missing + last.missing
    yield f"| changes that are not in silver | | {missing:,} | | 0 | {'ok' if not missing else 'missing'} |"
    yield ""
    yield "The first five minutes begin five minutes after the writer starts. Changes: "
    yield f"{first.rows:,} and {last.rows:,}."
    yield f"Memory from the second minute on, least / median / most, trend: {memory_of(run.samples)}."
    yield f"The writer was at most {run.late:.1f} s late."


def ratio_row(what: str, first: float, last: float, shown: str) -> str:
    compared = Compared(what, first, last)
    return f"| {what} | {shown} | {compared.ratio:.2f} | ≤ {TARGET} | {compared.verdict} |"


def busy_schema(tables: int, mode: str, folder: Path) -> list[str]:
    """A schema with many tables, of which one is written; the lines of the section."""
    with running("mysql80", max_binlog_size="1G") as server:
        database = server.fresh_database("bench")
        writer = Writer(server, database, Load(1, BUSY_ROWS))
        writer.create()
        task = Task(folder, server, database, SOURCE, SOURCE, mode=mode, jvm_options="", syncer=SYNCER)
        if mode == "incremental":
            task.start_here()
        made = [f"CREATE TABLE idle{number} (id INT PRIMARY KEY, v VARCHAR(40))" for number in range(tables - 1)]
        for first in range(0, len(made), STATEMENTS):
            server.execute(*made[first : first + STATEMENTS], database=database)
        with in_background(writer.write):
            began = datetime.now(timezone.utc)
            with task.process() as process:
                await_tables(process, silver_folders(task, writer))
                run = evaluated(process, task, writer, BUSY_SECONDS)
    commits = commits_of(task, writer)
    visible = applying(commits[writer.tables[0]])[0].at
    return list(
        schema_section(
            tables, (visible - began).total_seconds(), run, freshness(task, run, commits, run.begin, run.end)
        )
    )


def schema_section(tables: int, first: float, run: Run, found: Freshness) -> Iterator[str]:
    """Seconds until the first change, and the ages of changes afterwards."""
    yield f"{tables:,} tables in one schema, {BUSY_ROWS} row changes per second on one of them; the run starts while"
    yield "it is written. With `--mode all`, it loads all tables first; with `incremental`, its log creates them."
    yield ""
    yield "| figure | measured |"
    yield "| --- | ---: |"
    yield f"| from the process's start to the first rows in silver | {first:.1f} s |"
    yield f"| age of a change in silver, p50 | {found.p50:.1f} s |"
    yield f"| age of a change in silver, p95 | {found.p95:.1f} s |"
    yield f"| changes, not in silver at the end | {found.rows:,}, {found.missing:,} |"
    yield f"| memory (PSS): least / median / most, trend | {memory_of(run.samples)} |"


def commits_of(task: Task, writer: Writer) -> dict[str, list[Commit]]:
    return {table: read_commits(place) for table, place in silver_folders(task, writer).items()}


def freshness(
    task: Task, run: Run, commits: Mapping[str, Sequence[Commit]], begin: datetime, end: datetime
) -> Freshness:
    """The ages of the changes that were committed at the source between two times."""
    lakehouse = Lakehouse(root=str(task.root))
    events = events_of(open_session("bench"), lakehouse, replace(run, begin=begin, end=end))
    reached = {table: ends(some) for table, some in commits.items()}
    return freshness_of(ages_of(events, reached, run.end + timedelta(seconds=run.tail)))


def memory_between(run: Run, begin: datetime, end: datetime) -> float:
    """The median memory between two times, in bytes; samples are dated by their distance from the last one."""
    last = run.samples[-1].at
    return memory_of([one for one in run.samples if begin <= run.end - timedelta(seconds=last - one.at) <= end]).median
