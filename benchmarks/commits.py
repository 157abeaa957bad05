"""What a small Delta commit costs: the floor of what applying a table can cost, however few rows it has.

    make bench-commits                               # writes COMMITS.md

Tables of 10,000 rows as silver's are; 200 keys a commit. The kinds take turns, in both session profiles, so that each
meets the others' warm code and no table is in a state that suits one kind; of the rounds the last one counts.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from benchmarks.cpu import children, cpu_seconds
from benchmarks.page import measured_by, write_page
from dmdelta.lakehouse.profiles import Profile, profile_session
from dmdelta.lakehouse.session import open_session
from dmdelta.silver.rows.key_predicate import plan_key_predicate

TABLES, ROUNDS = 20, 3
ROWS, CHANGES = 10_000, 200
RUN = range(5_000, 5_000 + CHANGES)
SPREAD = range(7, ROWS, ROWS // CHANGES)
PROPERTIES = (
    "'delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='name', 'delta.enableTypeWidening'='true'"
)
HEAD = [
    "| operation | small profile: CPU ms | ms | large profile: CPU ms | ms |",
    "| --- | ---: | ---: | ---: | ---: |",
]
META_HEAD = ["", "| metadata | CPU ms | ms |", "| --- | ---: | ---: |"]


def changed(keys: range) -> pa.Table:
    """Rows with these keys and new values."""
    keys_column = pa.array(keys, pa.int64())
    return pa.table({"id": keys_column, "v": keys_column, "w": [f"text {key}" for key in keys]})


@dataclass(slots=True)
class Tables:
    """Tables that operations of every kind go to, in one session."""

    spark: SparkSession
    folder: str

    def kinds(self) -> dict[str, Callable[[str], object]]:
        """What is measured, each for the path of a table."""
        return {
            "append": self._append,
            "replaceWhere, an interval": lambda path: self._replace_where(path, RUN),
            "replaceWhere, `IN`": lambda path: self._replace_where(path, SPREAD),
            "replaceOn": self._replace_on,
            "MERGE": self._merge,
            "DESCRIBE HISTORY … LIMIT 1": lambda path: self.spark.sql(
                f"DESCRIBE HISTORY delta.`{path}` LIMIT 1"
            ).collect(),
        }

    def _rows(self, keys: range) -> DataFrame:
        """The changed rows, compacted as silver's changes are."""
        self.spark.createDataFrame(changed(keys)).createOrReplaceTempView("changes")
        ranked = "SELECT *, row_number() OVER (PARTITION BY id ORDER BY v DESC) AS age FROM changes"
        return self.spark.sql(f"SELECT id, v, w FROM ({ranked}) WHERE age = 1")

    def _named(self, rows: DataFrame) -> DataFrameWriter:
        # Both profiles write the same tables: a version that is not the highest would skip the commit.
        writer = rows.write.format("delta").option("txnAppId", "bench")
        return writer.option("txnVersion", str(time.monotonic_ns()))

    def _append(self, path: str) -> None:
        frame = self.spark.createDataFrame(changed(range(ROWS, ROWS + CHANGES)))
        self._named(frame).mode("append").save(path)

    def _replace_where(self, path: str, keys: range) -> None:
        condition = plan_key_predicate("id", "BIGINT", keys)
        self._named(self._rows(keys)).mode("overwrite").option("replaceWhere", condition).save(path)

    def _replace_on(self, path: str) -> None:
        writer = self._named(self._rows(SPREAD).alias("s")).mode("overwrite")
        writer.option("replaceOn", "t.id = s.id").option("targetAlias", "t").save(path)

    def _merge(self, path: str) -> None:
        self._rows(SPREAD).createOrReplaceTempView("s")
        self.spark.sql(
            f"""MERGE INTO delta.`{path}` t USING s ON t.id = s.id WHEN MATCHED AND s.v % 10 = 7 THEN DELETE
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
        ).collect()


def make(spark: SparkSession, folder: str, count: int) -> None:
    """Create the tables, with column mapping and deletion vectors."""
    rows = spark.createDataFrame(changed(range(ROWS)))
    for number in range(count):
        name = f"delta.`{folder}/{number}`"
        spark.sql(f"CREATE TABLE {name} (id BIGINT, v BIGINT, w STRING) USING delta TBLPROPERTIES ({PROPERTIES})")
        rows.writeTo(name).append()
    write_deltalake(f"{folder}/meta", pa.table({"run": ["one"], "n": [1]}))


Costs = dict[tuple[str, str], tuple[float, float]]
"""CPU ms and ms by operation and profile."""


def measure(spark: SparkSession, folder: str, count: int, rounds: int) -> Costs:
    """Run every operation on every table, in both profiles."""
    (jvm,) = children("java")
    found: Costs = {}
    tables = {profile.value: Tables(profile_session(spark, profile), folder) for profile in Profile}
    kinds = {(kind, name): call for name, of in tables.items() for kind, call in of.kinds().items()}
    for number in range(rounds):
        for kind in random.Random(number).sample(list(kinds), len(kinds)):
            cpu, began = cpu_seconds(jvm), time.perf_counter()
            for table in range(count):
                kinds[kind](f"{folder}/{table}")
            spent = (cpu_seconds(jvm) - cpu, time.perf_counter() - began)
            found[kind] = (1000 * spent[0] / count, 1000 * spent[1] / count)
    return found


def measure_metadata(folder: str, count: int, rounds: int) -> dict[str, tuple[float, float]]:
    """CPU ms and ms of this process for look-ups and flushes by delta-rs."""
    row = pa.table({"run": ["two"], "n": [2]})
    kinds: dict[str, Callable[[int], object]] = {
        "delta-rs: newest commit": lambda number: DeltaTable(f"{folder}/{number}").history(1),
        "delta-rs: append to a `dm_meta` table": lambda _: write_deltalake(f"{folder}/meta", row, mode="append"),
    }
    found = {}
    for _ in range(rounds):
        for kind, call in kinds.items():
            cpu, began = time.process_time(), time.perf_counter()
            for number in range(count):
                call(number)
            spent = (time.process_time() - cpu, time.perf_counter() - began)
            found[kind] = (1000 * spent[0] / count, 1000 * spent[1] / count)
    return found


def main() -> None:
    tables, rounds = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 1 else (TABLES, ROUNDS)
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        spark = open_session("dmdelta commits benchmark")
        make(spark, folder, tables)
        found = measure(spark, folder, tables, rounds)
        metadata = measure_metadata(folder, tables, rounds)
    kinds = dict.fromkeys(kind for kind, _ in found)
    pairs = {kind: (*found[kind, Profile.SMALL.value], *found[kind, Profile.LARGE.value]) for kind in kinds}
    lines = [f"| {kind} | {' | '.join(f'{number:.0f}' for number in numbers)} |" for kind, numbers in pairs.items()]
    meta = [f"| {kind} | {cpu:.0f} | {whole:.0f} |" for kind, (cpu, whole) in metadata.items()]
    setting = (
        f"{measured_by('python -m benchmarks.commits')}, {CHANGES} changed keys of a table of {ROWS:,} rows, one "
        "commit after the other; CPU of the JVM, or of the process that uses delta-rs."
    )
    write_page("COMMITS.md", "Delta commits", setting, [*HEAD, *lines, *META_HEAD, *meta])


if __name__ == "__main__":
    main()
