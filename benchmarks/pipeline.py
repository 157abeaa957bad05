"""Throughput: the codec beside mysql-replication, landing, and binlog to silver, in one run over the same log.

    make bench            # 200,000 inserts and 200,000 updates; writes benchmarks/RESULTS.md
    python -m benchmarks.pipeline --rows 20000

Cold is the first pass in a JVM, warm the median of the last three of ten: by then Java has compiled the hot code.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import yaml
from pyspark.sql import SparkSession

from benchmarks.page import measured_by, write_page
from benchmarks.workload import rotated_files, write_sysbench
from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import land, open_bronze, plan_landing
from dmdelta.changelog.context import SourceContext
from dmdelta.config import load_spec
from dmdelta.engine.run.runner import RunOptions, run_task
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.rules import BlockAllowList, SourceRules
from dmdelta.segments import list_segments
from dmdelta.source.relay.process import start_relay, wait_for
from dmdelta.source.relay.relay_task import RelayTask
from tests.support.servers import running

RELAY_SECONDS = 600
ROUNDS = 3
PASSES = 10
WARM_PASSES = 3


@dataclass(frozen=True)
class Line:
    """One measurement: what, the number of rows, and the seconds of which clock."""

    what: str
    rows: int
    seconds: float
    of: str

    def __str__(self) -> str:
        return f"| {self.what} | {self.rows:,} | {self.seconds:.2f} {self.of} | {self.rows / self.seconds:,.0f} |"


def decoder(*arguments: str, name: str) -> Line:
    """One decoder in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.decoders", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    result = json.loads(done.stdout)
    line = Line(name, result["rows"], result["cpu_seconds"], "CPU s")
    print(line, flush=True)
    return line


def middle(lines: Sequence[Line]) -> Line:
    """The pass with the median time, and the times of the others."""
    times = [line.seconds for line in lines]
    what = f"{lines[0].what} ({min(times):.2f} to {max(times):.2f} s)"
    return replace(lines[0], what=what, seconds=median(times))


def repeated(what: str, rows: int, work: Callable[[Path], object], folder: Path) -> list[Line]:
    """Passes of the same work in one JVM, each in a folder of its own: the first, and the median of the warm ones."""
    passes = [
        timed(f"{what}, pass {number}", rows, partial(work, folder / f"{number}")) for number in range(1, PASSES + 1)
    ]
    warm = sorted(line.seconds for line in passes[-WARM_PASSES:])
    spread = f"{warm[0]:.1f} to {warm[-1]:.1f}"
    return [
        Line(f"{what}, cold", rows, passes[0].seconds, "s"),
        Line(f"{what}, warm ({spread} s)", rows, median(warm), "s"),
    ]


def timed(what: str, rows: int, work: Callable[[], object]) -> Line:
    started = time.monotonic()
    work()
    line = Line(what, rows, time.monotonic() - started, "s")
    print(line, flush=True)
    return line


def relay(archive: Path, folder: Path) -> None:
    """Cut an archive into segments."""
    with start_relay(RelayTask("bench", str(folder), binlog_dir=str(archive), until_caught_up=True)) as process:
        wait_for(process, RELAY_SECONDS)


def land_all(spark: SparkSession, relay_folder: Path, database: str, root: Path) -> None:
    """Every segment to a new bronze table, that is there."""
    source = landing_source(root, database)
    landed = None
    while batch := plan_landing(list_segments(relay_folder, "bench"), landed):
        landed = land(spark, source, batch, landed, ())


def landing_source(root: Path, database: str) -> SourceContext:
    rules = SourceRules("bench", BlockAllowList(do_dbs=(database,)))
    return SourceContext(Lakehouse(root=str(root)), "bench", "bench", uuid.uuid4().hex, "mysql", rules)


def run_to_silver(archive: Path, database: str, folder: Path) -> None:
    """`dmdelta run --until-caught-up` on a task of its own, from its start to its last checkpoint."""
    folder.mkdir(parents=True)
    spec = folder / "task.yml"
    source = {"source-id": "bench", "binlog-dir": str(archive)}
    spec.write_text(
        yaml.safe_dump(
            {
                "name": "bench",
                "sources": [source],
                "block-allow-list": {"do-dbs": [database]},
                "lakehouse": {"root": str(folder / "lake")},
            }
        )
    )
    run_task(load_spec(spec), RunOptions(until_caught_up=True), lambda _progress: None)


def measure(rows: int, folder: Path) -> list[Line]:
    """All lines, in the order of the flow."""
    changes = 2 * rows
    archive = folder / "archive"
    archive.mkdir()
    with running("mysql80", max_binlog_size="1G") as server:
        database = write_sysbench(server, rows)
        for file in rotated_files(server):
            shutil.copy(file, archive)
        lines = [timed("relay: archive to segments", changes, lambda: relay(archive, folder / "relay"))]
        segments = [segment.path for segment in list_segments(folder / "relay" / "bench", "bench")]
        settings = {"host": server.host, "port": server.port, "user": server.user, "passwd": server.password}
        names = sorted(file.name for file in archive.iterdir())
        ours = partial(decoder, "dmdelta", *segments, name="dmdelta: segments to Arrow with VARIANT")
        rival = partial(
            decoder, "mysql-replication", json.dumps(settings), *names, name="mysql-replication: log to Python rows"
        )
        # In turns: the machine's speed drifts over such minutes.
        rounds = [(ours(), rival()) for _ in range(ROUNDS)]
    lines += [middle(runs) for runs in zip(*rounds, strict=True)]
    spark = open_session("dmdelta bench")
    register(spark)
    for number in range(1, PASSES + 1):
        open_bronze(spark, Lakehouse(root=str(folder / "land" / f"{number}")).bronze, "bench")
    landing = partial(land_all, spark, folder / "relay" / "bench", database)
    lines += repeated("landing: segments to bronze, committed", changes, landing, folder / "land")
    lines += repeated(
        "relay, bronze and silver, committed", changes, partial(run_to_silver, archive, database), folder / "run"
    )
    spark.stop()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000, help="rows inserted, and as many updated")
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(rows, Path(folder))
    codec, rival = lines[1], lines[2]
    faster = (rival.seconds / rival.rows) / (codec.seconds / codec.rows)
    setting = (
        f"{measured_by('make bench')}, a sysbench table (int, int, char(120), char(60)), "
        f"{rows:,} inserts in 50-row statements and {rows:,} one-row updates."
    )
    table = [
        "| what | rows | time | rows a second |",
        "| --- | ---: | ---: | ---: |",
        *lines,
        "",
        f"CPU a row: the codec takes {faster:.1f} times less than mysql-replication.",
    ]
    write_page("RESULTS.md", "Results", setting, table)


if __name__ == "__main__":
    main()
