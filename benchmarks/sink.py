"""How fast the sink is: bronze to MariaDB or TiDB, with the asynchronous and the synchronous checkpoint.

    make bench-sink                                  # 200,000 inserts and 200,000 one-row updates; writes SINK.md
    python -m benchmarks.sink --rows 20000
    make bench-sink TARGET=tidb                      # TiDB is built first, if it is not there; writes SINK-tidb.md

Every pass begins with an empty target and reads the same bronze; the first one of a JVM is the cold one.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cpu import children, cpu_seconds
from benchmarks.page import measured_by, write_page
from benchmarks.workload import write_sysbench
from dmdelta.lakehouse.session import open_session
from dmdelta.sink.settings import SinkSettings
from tests.support.servers import Server, running
from tests.support.servers.tidb import TidbServer, running_tidb
from tests.support.sinking import Sinking, target_of

PASSES = 2
INTERVAL = 1.0
HEAD = [
    "| what | row changes | seconds | row changes a second | CPU µs a change: Spark | Python | target | all |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
]


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of one pass, from opening the sink to its last checkpoint, and CPU seconds by process."""

    seconds: float
    spark: float
    python: float
    target: float

    def line(self, what: str, changes: int) -> str:
        cpu = (self.spark, self.python, self.target, self.spark + self.python + self.target)
        listed = " | ".join(f"{1e6 * seconds / changes:.1f}" for seconds in cpu)
        return f"| {what} | {changes:,} | {self.seconds:.2f} | {changes / self.seconds:,.0f} | {listed} |"


def measure(rows: int, kind: str, settings: SinkSettings, folder: Path) -> Iterator[str]:
    """Lines of the table."""
    spark = open_session("dmdelta sink benchmark")
    with running("mysql80", max_binlog_size="1G") as source:
        database = write_sysbench(source, rows)
        sinking = Sinking(spark, folder, source, [database], settings)
        sinking.land()
    with target_server(kind) as target:
        state = "cold"
        for compact in (True, False):
            for _ in range(PASSES):
                for synchronous in (False, True):
                    chosen = replace(settings, compact=compact, synchronous=synchronous, server=target_of(target))
                    found = one_pass(sinking, target, database, chosen)
                    flush = "synchronous" if synchronous else "asynchronous"
                    what = f"{kind}, {flush} flush, {'compacting' if compact else 'every change'}, {state}"
                    yield found.line(what, 2 * rows)
                    state = "warm"


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
    parser.add_argument("--batch", type=int, default=500)
    chosen = parser.parse_args()
    settings = SinkSettings(None, workers=chosen.workers, batch=chosen.batch, flush_interval=INTERVAL)  # type: ignore[arg-type]
    lines = list(HEAD)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        for line in measure(chosen.rows, chosen.target, settings, Path(folder)):
            print(line, flush=True)
            lines.append(line)
    setting = (
        f"{measured_by('python -m benchmarks.sink')} shared with the target,\n"
        f"{chosen.workers} workers, {chosen.batch} rows a transaction, checkpoint every {INTERVAL:g} s, from bronze.\n"
        f"The load average was {os.getloadavg()[1]:.0f}: beyond 3, seconds tell of others' work, CPU does not."
    )
    name = "SINK.md" if chosen.target == "mariadb" else f"SINK-{chosen.target}.md"
    write_page(name, "Sink", setting, lines)


if __name__ == "__main__":
    main()
