"""How fast a full load is: a table in MySQL to bronze and silver, by `dmdelta run` with task-mode full.

    python -m benchmarks.full_load               # 1, 2 and 4 million rows; writes benchmarks/FULL_LOAD.md
    python -m benchmarks.full_load --rows 100000

The first load in a JVM is cold; then each size is loaded with `snapshot.bronze` and without. MySQL, Spark and the
readers share the machine.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from benchmarks.page import measured_by, write_page
from benchmarks.pipeline import Line, timed
from benchmarks.usage import Peak, peak_of, sampling
from benchmarks.workload import write_table
from dmdelta.config import load_spec
from dmdelta.engine.run.runner import RunOptions, run_task
from tests.support.servers import Server, running

SIZES = (1_000_000, 2_000_000, 4_000_000)
SAMPLE_SECONDS = 0.5


def load(server: Server, database: str, folder: Path, *, bronze: bool) -> None:
    """A task of its own, from opening it to its last checkpoint."""
    folder.mkdir(parents=True)
    spec = folder / "task.yml"
    source = {"source-id": "bench", "host": server.host, "port": server.port, "user": server.user}
    source["password"] = server.password
    settings = {
        "name": "bench",
        "task-mode": "full",
        "snapshot": {"bronze": bronze},
        "sources": [source],
        "block-allow-list": {"do-dbs": [database]},
        "lakehouse": {"root": str(folder / "lake")},
    }
    spec.write_text(yaml.safe_dump(settings))
    run_task(load_spec(spec), RunOptions(), lambda _progress: None)


def measure(sizes: Sequence[int], folder: Path) -> list[tuple[Line, Peak]]:
    """Loads, and the most memory that each took."""
    lines: list[tuple[Line, Peak]] = []
    with running("mysql80", max_binlog_size="1G") as server:
        passes = [("cold", sizes[0], True), *(("warm", rows, bronze) for rows in sizes for bronze in (True, False))]
        for number, (state, rows, bronze) in enumerate(passes):
            database = write_table(server, rows)
            what = f"full load, {'bronze and silver' if bronze else 'silver only'}, {state}"
            with sampling(os.getpid(), SAMPLE_SECONDS) as samples:
                work = partial(load, server, database, folder / f"{number}", bronze=bronze)
                line = timed(what, rows, work)
            lines.append((line, peak_of(samples)))
            server.execute(f"DROP DATABASE {database}")
    return lines


def table_of(lines: Sequence[tuple[Line, Peak]]) -> list[str]:
    """A table of what was measured, and the most memory that it took."""
    return [
        "| what | rows | time | rows a second | memory (PSS) | of the largest Python process |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(f"{line} {peak.bytes / 1e6:,.0f} MB | {peak.largest / 1e6:,.0f} MB |" for line, peak in lines),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="sizes of the table")
    sizes = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        lines = measure(sizes, Path(folder))
    setting = (
        f"{measured_by('python -m benchmarks.full_load')}, MySQL 8.0 on the same machine,\n"
        "a sysbench table (int, int, char(120), char(60)). Memory is that of Java and all Python processes."
    )
    write_page("FULL_LOAD.md", "Full load", setting, table_of(lines))


if __name__ == "__main__":
    main()
