"""How fast silver is compared with its source: `dmdelta validate` on a table that a full load has written.

    python -m benchmarks.validate                # 1 million rows; writes benchmarks/VALIDATE.md
    python -m benchmarks.validate --rows 100000

The same comparison twice, then with a row changed in silver, then as a command of its own, with a heap of 1 GB. MySQL
and Spark share the machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.full_load import SAMPLE_SECONDS, load, table_of
from benchmarks.page import measured_by, write_page
from benchmarks.pipeline import Line, timed
from benchmarks.usage import Peak, peak_of, sampling
from benchmarks.workload import write_table
from dmdelta.config import load_spec
from dmdelta.engine.task.task import open_task
from dmdelta.engine.validation.command import validate
from dmdelta.engine.validation.results import Validated, ValidateRequest
from dmdelta.errors import QualityError
from tests.support.servers import running

HEAP = "1g"


def measure(rows: int, folder: Path) -> list[tuple[Line, Peak]]:
    """Comparisons, and the most memory that each took."""
    lines: list[tuple[Line, Peak]] = []
    with running("mysql80", max_binlog_size="1G") as server:
        database = write_table(server, rows)
        load(server, database, folder / "task", bronze=False)
        spec = load_spec(folder / "task" / "task.yml")
        task = open_task(spec, writing=False)
        (table,) = (str(row[0]) for row in server.query("SHOW TABLES", database=database))
        silver = task.lakehouse.silver(database, table)
        for what, damage in (("the same, first", ""), ("the same, again", ""), ("one row differs", f"UPDATE {silver}")):
            if damage:
                task.spark.sql(f"{damage} SET k = k + 1 WHERE id = {rows // 2}")
            found: list[Validated] = []
            with sampling(os.getpid(), SAMPLE_SECONDS) as samples:
                line = timed(what, rows, partial(validate, spec, ValidateRequest(), found.append))
            assert [one.different for one in found] == [int(bool(damage))]
            lines.append((line, peak_of(samples)))
        lines.append(as_command(rows, folder / "task" / "task.yml"))
    return lines


def as_command(rows: int, spec: Path) -> tuple[Line, Peak]:
    """The comparison in a process of its own, and the most memory that its processes took."""
    dmdelta, environment = Path(sys.executable).with_name("dmdelta"), {**os.environ, "SPARK_DRIVER_MEMORY": HEAP}
    began = time.monotonic()
    command: list[str | Path] = [dmdelta, "validate", spec]
    with (
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as child,
        sampling(child.pid, SAMPLE_SECONDS) as samples,
    ):
        child.wait()
    assert child.returncode == QualityError.exit_code  # of the row that differs
    line = Line(f"`dmdelta validate`, cold, {HEAP} of heap", rows, time.monotonic() - began, "s")
    print(line, flush=True)
    return line, peak_of(samples)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="size of the table")
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(rows, Path(folder))
    setting = (
        f"{measured_by('python -m benchmarks.validate')}, MySQL 8.0 on the same machine,\n"
        "a sysbench table (int, int, char(120), char(60)), two connections.\n"
        "Memory is that of Java and all Python processes."
    )
    write_page("VALIDATE.md", "Reconciliation", setting, table_of(lines))


if __name__ == "__main__":
    main()
