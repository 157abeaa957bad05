"""Whether a task stays as fast as it was, and its tables as small; how many tables it can have.

    make bench-long                                     # all parts, two hours; writes benchmarks/LONG_RUN.md
    python -m benchmarks.long_run --part batches        # 10,000 landed batches, an hour
    python -m benchmarks.long_run --part batches --batches 1000
    python -m benchmarks.long_run --part tables         # 200 tables for 30 minutes
    python -m benchmarks.long_run --part schema         # 5,000 tables in one schema, one of them busy

The page keeps the sections of the parts that do not run. `batches` lands about four batches per second, and the days
of the task are minutes (`benchmarks.shortened`): bronze expires, tables are compacted and vacuumed, and their logs
cleaned, many times. The phases of the run are those of its `/metrics`, a hundred batches at a time. Beside it, the
benchmark opens, looks up and plans reads of its tables with the product's functions.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from unittest.mock import patch

from benchmarks.freshness import END_SECONDS, SYNCER, await_tables, silver_folders
from benchmarks.load import Load, Writer
from benchmarks.long_figures import Moment, compare, comparison, course, files, page_with, row_of
from benchmarks.long_probes import Probes
from benchmarks.long_tables import LEAST_MINUTES, busy_schema, many_tables
from benchmarks.page import measured_by, write_page
from benchmarks.shortened import SHORTENED, shortened_environment
from benchmarks.usage import usage_below
from dmdelta.lakehouse.session import SessionSettings, open_session
from tests.support.background import in_background
from tests.support.servers import Server, running
from tests.support.task import Task, TaskProcess

PAGE = "LONG_RUN.md"
PARTS = {"batches": "Many batches", "tables": "Many tables", "schema": "A schema with many tables"}
LOAD = Load(tables=3, rows=60)
LANDING_INTERVAL = "250ms"
SHORT_SYNCER = {**SYNCER, "checkpoint-flush-interval": "500ms"}
NEEDED = ("expire", "compact", "vacuum", "clean")
"""The maintenance that a run must have met."""
STALLED_SECONDS, LATE_SECONDS = 300.0, 60.0
"""The limits of the time for a hundred batches, and of silver's lag."""
HUNDRED = 100
WARM, WARM_SHARE = 3, 0.15
"""The hundreds, and the share of all, until Java is warm and the retention of logs has passed once."""
LEAST = 6 * HUNDRED
PHASES = ("land", "turn", "apply", "flush")
POLL_SECONDS = 0.5


def look(run: TaskProcess, probes: Probes, began: float) -> Moment:
    figures = run.figures()
    found = {(one.labels["phase"], one.name.rpartition("_")[2]): one.value for one in figures["dmdelta_batch_seconds"]}
    spent = {phase: (found.get((phase, "count"), 0.0), found.get((phase, "sum"), 0.0)) for phase in PHASES}
    maintenance = {
        one.labels["action"]: int(one.value)
        for one in figures["dmdelta_table_maintenance"]
        if one.name.endswith("_total")
    }
    return Moment(
        seconds=time.monotonic() - began,
        batches=int(spent["land"][0]),
        spent=spent,
        memory=usage_below(run.pid).bytes,
        probes=probes.times(),
        files=probes.files(),
        maintenance=maintenance,
    )


def landed(run: TaskProcess) -> int:
    samples = run.figures()["dmdelta_batch_seconds"]
    return int(sum(one.value for one in samples if one.labels["phase"] == "land" and one.name.endswith("_count")))


def follow(run: TaskProcess, probes: Probes, batches: int) -> list[Moment]:
    """A moment each hundred batches, from the first batch on."""
    probes.warm()
    began = time.monotonic()
    moments = [look(run, probes, began)]
    while moments[-1].batches < batches:
        assert run.poll() is None, run.log()
        assert time.monotonic() - began < moments[-1].seconds + STALLED_SECONDS, f"nothing lands:\n{run.log()}"
        time.sleep(POLL_SECONDS)
        if landed(run) >= moments[-1].batches + HUNDRED:
            moments.append(look(run, probes, began))
            print(row_of(moments[-2], moments[-1], PHASES), dict(moments[-1].files), flush=True)
    return moments


def check(run: TaskProcess, last: Moment) -> None:
    """Assert that the run was whole: everything was applied and maintained, and nothing failed."""
    figures = run.figures()
    values = {name: [one.value for one in figures[f"dmdelta_{name}"]] for name in ("tables_stopped", "task_retries")}
    late = max(one.value for one in figures["dmdelta_lag_seconds"] if one.labels["stage"] == "applied")
    lacking = [action for action in NEEDED if not last.maintenance.get(action)]
    assert not lacking, f"no {', '.join(lacking)} in {last.seconds:.0f} s: {dict(last.maintenance)}"
    assert not last.maintenance.get("failure"), f"maintenance failed:\n{run.log()}"
    assert not any(map(any, values.values())), f"{values}\n{run.log()}"
    assert late < LATE_SECONDS, f"silver is {late:.0f} s behind"


def many_batches(batches: int, folder: Path) -> list[str]:
    """Land so many batches; the lines of the section."""
    with running("mysql80", max_binlog_size="1G") as server:
        writer = Writer(server, server.fresh_database("long"), LOAD)
        writer.create()
        task = shortened_task(folder, server, writer.database)
        session = open_session("bench", SessionSettings(beside_run=True))
        probes = Probes(session, task, writer.tables[0])
        with (
            patch.dict(os.environ, shortened_environment(datetime.now(timezone.utc))),
            task.process() as run,
            in_background(writer.write),
        ):
            await_tables(run, silver_folders(task, writer))
            began = writer.written
            moments = follow(run, probes, batches)
            written = writer.written - began
            check(run, moments[-1])
            run.terminate()
            assert run.wait(END_SECONDS) == 0, run.log()
    return section(moments, written, writer.behind)


def shortened_task(folder: Path, server: Server, database: str) -> Task:
    settings: dict[str, object] = {
        "metrics": {"port": 0},
        "live": {"landing-interval": LANDING_INTERVAL},
        "maintenance": {"bronze-days": 1},
    }
    task = Task(folder, server, database, "bench", "bench", settings=settings, jvm_options="", syncer=SHORT_SYNCER)
    task.purge |= {"expires": "3m"}
    return task


def section(moments: list[Moment], written: int, late: float) -> list[str]:
    warm, last = moments[max(WARM, int(WARM_SHARE * len(moments))) :], moments[-1]
    maintenance = ", ".join(f"{action} {times:,}" for action, times in sorted(last.maintenance.items()))
    speed = (last.batches - moments[0].batches) / last.seconds
    changes = written / last.seconds
    return [
        f"{last.batches:,} batches in {last.seconds / 60:.0f} minutes, {speed:.1f} per second; {LOAD.tables} tables,",
        f"{changes:,.0f} row changes per second; the writer was at most {late:.1f} s late. What is shorter than in a",
        "user's task:",
        "",
        *SHORTENED,
        f"- Batches land every {LANDING_INTERVAL} (1.25 s), and the checkpoint is flushed every 500 ms (30 s).",
        "",
        f"The first {warm[0].batches:,} batches are not compared: Java and the benchmark's own session are cold, and",
        "logs grow to their retention. A user's log keeps about ten times as many commits; LOG_GROWTH.md shows what",
        "they cost. Maintenance of bronze slows one group of 100 batches in three or four: means of 20 groups show it,",
        "medians of 5 do not. land: reading, decoding and committing a batch. turn: applying the changes of one table,",
        "from memory. apply: a range of all tables, with their waiting. flush: one commit of the checkpoint. Planning",
        "is that of the first query of a session, without the log in memory.",
        "",
        *comparison(list(compare(warm, PHASES))),
        "",
        f"Maintenance of the run: {maintenance}.",
        "",
        *course(moments, PHASES),
        "",
        "Files on the disk, of all tables, with those that VACUUM and the cleaning of logs have not removed yet:",
        "",
        *files(moments),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--batches", type=int, default=10_000, help="so many are landed")
    parser.add_argument("--tables", type=int, default=5_000, help="of the part schema")
    parser.add_argument("--mode", choices=("incremental", "all"), default="all", help="of the part schema")
    parser.add_argument("--minutes", type=int, default=30, help=f"of the part tables, at least {LEAST_MINUTES}")
    chosen = parser.parse_args()
    if chosen.minutes < LEAST_MINUTES:
        parser.error(f"fewer than {LEAST_MINUTES} minutes do not tell the first five from the last five")
    if chosen.batches < LEAST:
        parser.error(f"fewer than {LEAST} batches do not tell the first from the last hundred")
    for part in PARTS if chosen.part == "all" else (chosen.part,):
        with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
            command, lines = measure(part, chosen, Path(folder))
        lines = [f"{measured_by(command)}, MySQL 8.0, the writer and the run on the same machine.", "", *lines]
        page = Path(__file__).with_name(PAGE)
        text = page.read_text() if page.exists() else ""
        titles: Mapping[str, str] = PARTS
        setting = "Whether a task keeps its speed and its tables stay small, and how many tables it can have."
        write_page(PAGE, "Long runs", setting, page_with(text, list(titles.values()), titles[part], lines))


def measure(part: str, chosen: argparse.Namespace, folder: Path) -> tuple[str, list[str]]:
    """The command that runs a part, and the lines of its section."""
    command = f"python -m benchmarks.long_run --part {part}"
    if part == "batches":
        return f"{command} --batches {chosen.batches}", many_batches(chosen.batches, folder)
    if part == "tables":
        return f"{command} --minutes {chosen.minutes}", many_tables(chosen.minutes, folder)
    lines = busy_schema(chosen.tables, chosen.mode, folder)
    return f"{command} --tables {chosen.tables} --mode {chosen.mode}", lines


if __name__ == "__main__":
    main()
