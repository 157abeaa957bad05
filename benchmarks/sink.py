"""How fast the sink is: bronze to MariaDB or TiDB, with the asynchronous and the synchronous checkpoint.

    make bench-sink                                  # 200,000 inserts and 200,000 one-row updates; writes SINK.md
    python -m benchmarks.sink --rows 20000

Every pass begins with an empty target and reads the same bronze; the first one of a JVM is the cold one.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.workload import write_sysbench
from dmdelta.lakehouse.session import open_session
from dmdelta.sink.settings import SinkSettings
from tests.support.servers import Server, running
from tests.support.sinking import Sinking, target_of

RESULTS = Path(__file__).with_name("SINK.md")
PASSES = 2
INTERVAL = 1.0


def measure(rows: int, kind: str, settings: SinkSettings, folder: Path) -> list[str]:
    """Lines of the table."""
    spark = open_session("dmdelta sink benchmark")
    with running("mysql80", max_binlog_size="1G") as source:
        database = write_sysbench(source, rows)
        sinking = Sinking(spark, folder, source, [database], settings)
        sinking.land()
    with running(kind, innodb_buffer_pool_size="512M", innodb_log_file_size="256M", log_bin=None) as target:
        lines: list[str] = []
        for compact in (True, False):
            for number in range(PASSES):
                for synchronous in (False, True):
                    chosen = replace(settings, compact=compact, synchronous=synchronous, server=target_of(target))
                    seconds = one_pass(sinking, target, database, chosen)
                    state = "cold" if not lines else f"pass {number + 1}"
                    flush = "synchronous" if synchronous else "asynchronous"
                    what = f"{kind}, {flush} flush, {'compacting' if compact else 'every change'}, {state}"
                    lines.append(f"| {what} | {2 * rows:,} | {seconds:.2f} | {2 * rows / seconds:,.0f} |")
                    print(lines[-1], flush=True)
    return lines


def one_pass(sinking: Sinking, target: Server, database: str, settings: SinkSettings) -> float:
    """Execute all of bronze on an empty target; seconds, from opening the sink to its last checkpoint."""
    target.execute(f"DROP DATABASE IF EXISTS {database}", f"DROP DATABASE IF EXISTS {settings.metadata}")
    sinking.settings = settings
    began = time.perf_counter()
    sinking.run()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000, help="rows inserted, and rows updated")
    parser.add_argument("--target", default="mariadb")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=500)
    chosen = parser.parse_args()
    settings = SinkSettings(None, workers=chosen.workers, batch=chosen.batch, flush_interval=INTERVAL)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(chosen.rows, chosen.target, settings, Path(folder))
    today = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    how = f"{chosen.workers} workers, {chosen.batch} rows a transaction, checkpoint every {INTERVAL:g} s"
    text = "\n".join(
        [
            "# Sink",
            "",
            f"`python -m benchmarks.sink` on {today}: {os.cpu_count()} cores shared with the target,",
            f"{how}, from bronze.",
            "",
            "| what | row changes | seconds | row changes a second |",
            "| --- | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
