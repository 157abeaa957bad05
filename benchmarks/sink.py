"""The sink's throughput: bronze to MariaDB or TiDB, with the asynchronous and the synchronous checkpoint.

    make bench-sink                                  # 200,000 inserts and 200,000 one-row updates; writes SINK.md
    python -m benchmarks.sink --rows 20000
    make bench-sink TARGET=tidb                      # TiDB is built first, if it is not there; writes SINK-tidb.md

Every pass begins with an empty target and reads the same bronze; the first one of a JVM is the cold one, and another
one warms it. Then the flushes take turns: asynchronous, synchronous, synchronous, asynchronous. Medians are listed.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.cpu import children, cpu_seconds
from benchmarks.page import measured_by, write_page
from benchmarks.workload import write_sysbench
from dmdelta.lakehouse.session import open_session
from dmdelta.sink.settings import SinkSettings
from tests.support.servers import Server, running
from tests.support.servers.tidb import TidbServer, running_tidb
from tests.support.sinking import Sinking, target_of

PASSES = 4
INTERVAL = 1.0
HEAD = [
    "| what | changes | seconds: median | all | changes a second | CPU µs a change: Spark | Python | target | all |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
]


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of one pass, from the sink's start to its last checkpoint, and CPU seconds by process."""

    seconds: float
    spark: float
    python: float
    target: float


def line(what: str, passes: Sequence[Pass], changes: int) -> str:
    """A line of the table: the median of some passes by their seconds, and its CPU."""
    ordered = sorted(passes, key=lambda one: one.seconds)
    middle = ordered[(len(ordered) - 1) // 2]
    cpu = (middle.spark, middle.python, middle.target, middle.spark + middle.python + middle.target)
    listed = " | ".join(f"{1e6 * seconds / changes:.1f}" for seconds in cpu)
    span = f"{ordered[0].seconds:.2f} to {ordered[-1].seconds:.2f}"
    return f"| {what} | {changes:,} | {middle.seconds:.2f} | {span} | {changes / middle.seconds:,.0f} | {listed} |"


def measure(rows: int, kind: str, settings: SinkSettings, folder: Path) -> Iterator[str]:
    """Lines of the table."""
    spark = open_session("dmdelta sink benchmark")
    with running("mysql80", max_binlog_size="1G") as source:
        database = write_sysbench(source, rows)
        sinking = Sinking(spark, folder, source, [database], settings)
        sinking.land()
    with target_server(kind) as target:
        chosen = replace(settings, server=target_of(target))
        yield line(
            f"{kind}, asynchronous flush, compacting, cold", [one_pass(sinking, target, database, chosen)], 2 * rows
        )
        one_pass(sinking, target, database, replace(chosen, compact=False))
        for compact in (True, False):
            passes: dict[bool, list[Pass]] = {False: [], True: []}
            for number in range(2 * PASSES):
                synchronous = number % 4 in (1, 2)
                found = one_pass(sinking, target, database, replace(chosen, compact=compact, synchronous=synchronous))
                passes[synchronous].append(found)
            for synchronous, flush in ((False, "asynchronous"), (True, "synchronous")):
                what = f"{kind}, {flush} flush, {'compacting' if compact else 'every change'}, warm"
                yield line(what, passes[synchronous], 2 * rows)
            gain = median(one.seconds for one in passes[True]) / median(one.seconds for one in passes[False]) - 1
            yield f"| … asynchronous is faster by | | {100 * gain:.0f} % | | | | | | |"


def target_server(kind: str) -> AbstractContextManager[Server | TidbServer]:
    if kind == "tidb":
        return running_tidb()
    return running(kind, innodb_buffer_pool_size="512M", innodb_log_file_size="256M", log_bin=None)


def one_pass(sinking: Sinking, target: Server | TidbServer, database: str, settings: SinkSettings) -> Pass:
    """Execute all of bronze on an empty target."""
    target.execute(f"DROP DATABASE IF EXISTS {database}", f"DROP DATABASE IF EXISTS {settings.metadata}")
    sinking.settings = settings
    (jvm,) = children("java")
    began, python = time.perf_counter(), time.process_time()
    others = [cpu_seconds(pid) for pid in (jvm, target.pid)]
    sinking.run()
    seconds, own = time.perf_counter() - began, time.process_time() - python
    spark, server = (cpu_seconds(pid) - before for pid, before in zip((jvm, target.pid), others, strict=True))
    return Pass(seconds, spark, own, server)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000, help="rows inserted, and rows updated")
    parser.add_argument("--target", default="mariadb")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, help="rows a transaction: 500, to TiDB 2000")
    chosen = parser.parse_args()
    batch = chosen.batch or (2000 if chosen.target == "tidb" else 500)
    settings = SinkSettings(None, workers=chosen.workers, batch=batch, flush_interval=INTERVAL)  # type: ignore[arg-type]
    lines = list(HEAD)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        for found in measure(chosen.rows, chosen.target, settings, Path(folder)):
            print(found, flush=True)
            lines.append(found)
    setting = (
        f"{measured_by(f'python -m benchmarks.sink --target {chosen.target}')} shared with the target,\n"
        f"{chosen.workers} workers, {batch} rows a transaction, checkpoint every {INTERVAL:g} s, from bronze.\n"
        f"The load average was {os.getloadavg()[1]:.0f}: above 3, seconds include other processes' work, CPU not."
    )
    name = "SINK.md" if chosen.target == "mariadb" else f"SINK-{chosen.target}.md"
    write_page(name, "Sink", setting, lines)


if __name__ == "__main__":
    main()
