"""What a long run's tables cost to open, look up and plan, and how many files they have; measured beside the run."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from dmdelta.bronze.progress import landing_app
from dmdelta.changelog.ranges import not_before, of_source
from dmdelta.checkpoint.store import load_points
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from dmdelta.lakehouse.access.local_root import local_folder
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.silver.table.target import silver_app
from tests.support.task import Task

KEPT_DAYS = 3
"""The newest days of bronze: one is kept, one is written, and expiry is late by up to one."""
REPEATS, PLANS = 7, 3
WARM_PLANS = 60
"""Spark's planner is compiled by then."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Reads the tables of a task with the product's functions.

    Attributes:
        spark: this process's.
        table: of silver.
    """

    spark: SparkSession
    task: Task
    table: str

    def times(self) -> dict[str, float]:
        """Seconds of each operation, the median of some repeats; few of Spark, which takes a core from the run."""
        looks, plans = self._operations()
        found = {what: _median_of(REPEATS, act) for what, act in looks.items()}
        return found | {what: _median_of(PLANS, act) for what, act in plans.items()}

    def warm(self) -> None:
        """Repeat the operations of Spark until they are as fast as later."""
        _, plans = self._operations()
        for act in plans.values():
            _median_of(WARM_PLANS, act)

    def _operations(self) -> tuple[dict[str, Callable[[], object]], dict[str, Callable[[], object]]]:
        """Those of the product's functions, and those of Spark."""
        task, spark, lakehouse = self.task, self.spark, Lakehouse(root=str(self.task.root))
        bronze, silver = lakehouse.bronze, lakehouse.silver(task.database, self.table)
        landing = landing_app(task.name, task.source_id)
        applying = silver_app(task.name, task.source_id, task.database, self.table)
        newest = newest_own_commit(spark, bronze, landing)
        assert newest is not None
        new = f"SELECT * FROM {bronze} WHERE {of_source(task.source_id)} AND {not_before(newest.tag.begin)}"
        looks: dict[str, Callable[[], object]] = {
            "history look-up in bronze": lambda: newest_own_commit(spark, bronze, landing),
            "history look-up in silver": lambda: newest_own_commit(spark, silver, applying),
            "Delta checkpoint and log of bronze, delta-rs": _local(bronze).properties,
            "Delta checkpoint and log of silver, delta-rs": _local(silver).properties,
            "checkpoint of the task in dm_meta": lambda: load_points(spark, lakehouse, task.name, task.source_id),
        }
        plans: dict[str, Callable[[], object]] = {
            "planning the newest rows of bronze, Spark": lambda: self._plan(new),
            "planning a read of silver, Spark": lambda: self._plan(f"SELECT * FROM {silver} WHERE id = 1"),
        }
        return looks, plans

    def files(self) -> dict[str, int]:
        """The numbers of files on the disk."""
        found: dict[str, int] = {}
        for kind in ("bronze", "silver", "dm_meta"):
            data, log = count_files(self.task.root / kind)
            found |= {kind: data, f"{kind}: log": log}
        days = sorted((self.task.root / "bronze").glob("landed_on=*"))
        found["bronze: expired days"] = sum(len(list(day.glob("*.parquet"))) for day in days[:-KEPT_DAYS])
        return found | {"relay": sum(1 for _ in self.task.relay.rglob("*.binlog"))}

    def _plan(self, query: str) -> None:
        jvm = self.spark._jvm  # noqa: SLF001 - a session that has just started has read no log
        assert jvm is not None
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self.spark.sql(query)._jdf.queryExecution().executedPlan()  # noqa: SLF001


def count_files(folder: Path) -> tuple[int, int]:
    """The data files below a folder, and the files of the tables' logs."""
    data = log = 0
    for place, _, names in os.walk(folder):
        if "_delta_log" in Path(place).parts:
            log += len(names)
        else:
            data += sum(name.endswith((".parquet", ".bin")) for name in names)
    return data, log


def _local(table: str) -> LocalTable:
    folder = local_folder(table)
    assert folder is not None
    return LocalTable(table, folder)


def _median_of(repeats: int, act: Callable[[], object]) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - began)
    return median(seconds)
