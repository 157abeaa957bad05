"""What an append costs if the table's log has many old commits: Spark and delta-rs list all of it.

    make bench-log                              # writes LOG_GROWTH.md
    python -m benchmarks.log_growth --commits 2000 10000

The old commits are fillers before the table's first version, which a checkpoint has: only their names are read.
A commit of Spark has four files, of which maintenance removes the three checksums after ten minutes.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from deltalake import DeltaTable
from pyspark.sql import DataFrame

from benchmarks.page import measured_by, write_page
from dmdelta.lakehouse.session import SessionSettings, open_session

COMMITS = (0, 2_000, 10_000, 30_000, 70_000)
FIRST, WARM, REPEATS = 3, 5, 20
HEAD = (
    "| old commits | files each | append with Spark, s | ratio | opening with delta-rs, ms |",
    "| ---: | ---: | ---: | ---: | ---: |",
)


def grow(table: Path, commits: int, files: int) -> None:
    """Put so many old commits before those of a table, whose versions rise by their number."""
    log = table / "_delta_log"
    body, checksum = ((log / f"{1:020d}.{kind}").read_text() for kind in ("json", "crc"))
    for file in log.glob("*.crc"):
        file.unlink()
    for file in log.glob(".*.crc"):
        file.unlink()
    DeltaTable(table).create_checkpoint()
    for file in [file for file in log.iterdir() if file.name[:20].isdigit()]:
        file.rename(log / f"{int(file.name[:20]) + commits:020d}{file.name[20:]}")
    newest = log / "_last_checkpoint"
    found = json.loads(newest.read_text())
    found.pop("checksum", None)
    newest.write_text(json.dumps({**found, "version": found["version"] + commits}))
    for version in range(commits):
        names = (f"{version:020d}.json", f"{version:020d}.crc", f".{version:020d}.json.crc", f".{version:020d}.crc.crc")
        for name, content in list(zip(names, (body, checksum, "", ""), strict=True))[:files]:
            (log / name).write_text(content)


def seconds(act: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return median(found)


def measure(rows: DataFrame, table: Path, commits: int, files: int) -> tuple[float, float]:
    """Seconds of an append with Spark, and of opening with delta-rs."""
    spark = rows.sparkSession
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '50')")

    def append() -> None:
        rows.write.format("delta").mode("append").save(str(table))

    for _ in range(FIRST):
        append()
    grow(table, commits, files)
    seconds(append, WARM)
    return seconds(append, REPEATS), seconds(lambda: DeltaTable(table).version(), REPEATS)


def measured(commits: Sequence[int]) -> Iterator[str]:
    spark = open_session("dmdelta log growth benchmark", SessionSettings(beside_run=True))
    rows = spark.createDataFrame([(1,)], "id INT")
    base: float | None = None
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        table = Path(folder) / "table"
        measure(rows, table, 0, 1)  # until Java is warm
        for number in commits:
            for files in (1, 4) if number else (1,):
                shutil.rmtree(table)
                spark_seconds, opening = measure(rows, table, number, files)
                base = base or spark_seconds
                ratio = spark_seconds / base
                yield f"| {number:,} | {files} | {spark_seconds:.2f} | {ratio:.2f} | {1000 * opening:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, nargs="+", default=COMMITS, help="numbers of old commits")
    lines = [*HEAD, *measured(parser.parse_args().commits)]
    setting = f"{measured_by('python -m benchmarks.log_growth')}, one row per commit, medians of {REPEATS}."
    write_page("LOG_GROWTH.md", "Old commits in a table's log", setting, lines)


if __name__ == "__main__":
    main()
