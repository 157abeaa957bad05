"""What a small Delta commit costs: the floor of what applying a table can cost, however few rows it has.

    make bench-commits                               # writes COMMITS.md

Tables of 100 rows as silver's are, three rows a commit. The kinds take turns, so that each meets the others' warm code
and nobody's cached snapshot; of the rounds the last one counts.
"""

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.cpu import children, cpu_seconds
from benchmarks.page import measured_by, write_page
from dmdelta.lakehouse.session import open_session

TABLES, ROUNDS = 20, 3
HEAD = ["| commit | CPU ms of the JVM | ms |", "| --- | ---: | ---: |"]
ROWS = "(3L, 1L, 'y'), (5L, 2L, 'y'), (200L, 3L, 'y')"
KEYS = "id IN (3, 5, 200)"


@dataclass(slots=True)
class Tables:
    """Tables that commits of every kind go to."""

    spark: SparkSession
    folder: str
    count: int
    _version: int = 0

    def make(self) -> None:
        rows = pa.table(
            {"id": pa.array(range(100), pa.int64()), "v": pa.array(range(100), pa.int64()), "w": ["x"] * 100}
        )
        for number in range(self.count):
            made = self.spark.createDataFrame(rows).write.format("delta")
            made.option("delta.enableDeletionVectors", "true").save(f"{self.folder}/{number}")

    def kinds(self) -> dict[str, Callable[[str], object]]:
        spark = self.spark
        return {
            "none: the table is looked at": lambda path: spark.sql(f"SELECT 1 FROM delta.`{path}` LIMIT 0").collect(),
            "none: DESCRIBE HISTORY … LIMIT 1": lambda path: spark.sql(
                f"DESCRIBE HISTORY delta.`{path}` LIMIT 1"
            ).collect(),
            "append": lambda path: self._rows().write.format("delta").mode("append").save(path),
            "append that names its transaction": self._append_once,
            "overwrite by replaceWhere": lambda path: (
                self._rows().write.format("delta").mode("overwrite").option("replaceWhere", KEYS).save(path)
            ),
            "DELETE": lambda path: spark.sql(f"DELETE FROM delta.`{path}` WHERE {KEYS}"),
            "MERGE": lambda path: spark.sql(
                f"""MERGE INTO delta.`{path}` t USING (SELECT * FROM VALUES {ROWS} AS s(id, v, w)) s
                ON t.id = s.id AND t.{KEYS} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
            ),
        }

    def _rows(self) -> DataFrame:
        return self.spark.sql(f"SELECT * FROM VALUES {ROWS} AS t(id, v, w)")

    def _append_once(self, path: str) -> None:
        self._version += 1
        named = self._rows().write.format("delta").mode("append").option("txnAppId", "bench")
        named.option("txnVersion", str(self._version)).save(path)


def measure(tables: Tables, rounds: int) -> dict[str, tuple[float, float]]:
    """CPU ms and ms of a commit by kind."""
    (jvm,) = children("java")
    found: dict[str, tuple[float, float]] = {}
    kinds = tables.kinds()
    for number in range(rounds):
        for kind in random.Random(number).sample(list(kinds), len(kinds)):
            cpu, began = cpu_seconds(jvm), time.perf_counter()
            for table in range(tables.count):
                kinds[kind](f"{tables.folder}/{table}")
            spent = (cpu_seconds(jvm) - cpu, time.perf_counter() - began)
            found[kind] = (1000 * spent[0] / tables.count, 1000 * spent[1] / tables.count)
    return {kind: found[kind] for kind in kinds}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        tables = Tables(open_session("dmdelta commits benchmark"), folder, TABLES)
        tables.make()
        found = measure(tables, ROUNDS)
    lines = [f"| {kind} | {cpu:.0f} | {whole:.0f} |" for kind, (cpu, whole) in found.items()]
    setting = f"{measured_by('python -m benchmarks.commits')}, three rows a commit, one after the other."
    write_page("COMMITS.md", "Delta commits", setting, [*HEAD, *lines])


if __name__ == "__main__":
    main()
