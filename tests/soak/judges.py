"""Silver and the sink's target are compared with the sources: by a full diff of our own, and by `dmdelta validate`."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.types import silver_types
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.sharding import Shard
from tests.soak.operations import Operations
from tests.soak.sources import Source
from tests.soak.task import MERGED, SoakTask
from tests.soak.validated import Table, plan_objections
from tests.support.diff import differences
from tests.support.lake import is_table, newest_version
from tests.support.servers import Server
from tests.support.sinking import table_differences, union_differences

SHOWN = 10
THREADS = 2
"""Spark reads a table while Python compares another one."""
Check = Callable[[], list[str]]
"""The differences of one table."""


@dataclass
class Judges:
    """
    Attributes:
        equal_seconds: the time after the marks arrive until the last table is equal: slow tables may be behind.
        compared: tables so far.
        validated: tables by the status that `dmdelta validate` reports.
        not_compared: tables by the reason that it reports.
    """

    spark: SparkSession
    task: SoakTask
    operations: Operations
    equal_seconds: float = 120.0
    compared: int = 0
    validated: Counter[str] = field(default_factory=Counter)
    not_compared: Counter[str] = field(default_factory=Counter)
    _marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By silver table: the version that was read last, and its newest mark."""

    @property
    def lakehouse(self) -> Lakehouse:
        return Lakehouse(root=str(self.task.root))

    def mark(self, source: Source) -> int:
        """The newest phase of a source that is complete in silver, and in the target; -1: none."""
        found = self._mark_of_silver(self.lakehouse.silver(source.marks, "m"))
        return found if self.task.target is None else min(found, self._mark_of_target(source))

    def _mark_of_silver(self, marks: str) -> int:
        """Each version is read once: a query per second takes much of the processor time that the task needs."""
        version, (known, found) = newest_version(marks), self._marks.get(marks, (-1, -1))
        if version > known:
            (row,) = self.spark.sql(f"SELECT max(id) AS id FROM {marks}").collect()
            found = -1 if row.id is None else int(row.id)
            self._marks[marks] = (version, found)
        return found

    def _mark_of_target(self, source: Source) -> int:
        assert self.task.target is not None
        if not self.task.target.query(f"SHOW DATABASES LIKE '{source.marks}'"):
            return -1
        if not self.task.target.query("SHOW TABLES LIKE 'm'", source.marks):
            return -1
        return int(self.task.target.query("SELECT COALESCE(MAX(id), -1) FROM m", source.marks)[0][0])

    def compare(self, tend: Callable[[], None]) -> int:
        """Compare every table; different ones repeatedly, up to the time limit. The number of tables.

        Raises:
            AssertionError: tables differ.
        """
        deadline, left = time.monotonic() + self.equal_seconds, [*self._silver(), *self._target()]
        count = len(left)
        while left:
            with ThreadPoolExecutor(THREADS) as pool:
                found = list(zip(left, pool.map(lambda check: check(), left), strict=True))
            left = [check for check, lines in found if lines]
            if left and time.monotonic() > deadline:
                raise AssertionError("\n".join(line for _, lines in found for line in lines[:SHOWN]))
            if left:
                tend()
                time.sleep(1)
        self.compared += count
        return count

    def validate(self) -> None:
        """The second comparison.

        Raises:
            AssertionError: it finds a difference, or other tables than the full diff.
        """
        tables = frozenset((source.source_id, f"{database}.{table}") for source, database, table in self._tables())
        shards = frozenset((source.source_id, f"{shard}.t") for source, shard in self._shards())
        self._validate("silver", tables | shards)
        if self.task.target is not None:
            # No column of the target's merged table identifies the rows of a shard.
            self._validate("sink", tables | shards, shards)

    def _validate(self, against: str, tables: frozenset[Table], excluded: frozenset[Table] = frozenset()) -> None:
        found = self.operations.validate(against)
        self.validated.update(str(one["status"]) for one in found)
        self.not_compared.update(str(one["reason"]) for one in found if one["status"] == "not compared")
        objections = plan_objections(found, tables, excluded)
        assert not objections, f"dmdelta validate --against={against}:\n" + "\n".join(objections[:SHOWN])

    def _silver(self) -> Iterator[Check]:
        for source, database, table in self._tables():
            yield partial(self._differences, source, database, table)
        for source, shard in self._shards():
            yield partial(self._shard_differences, source, shard)

    def _target(self) -> Iterator[Check]:
        if (target := self.task.target) is None:
            return
        for source, database, table in self._tables():
            yield partial(_target_differences, source, target, database, table)
        shards = [(source.server, shard, "t") for source, shard in self._shards()]
        yield partial(union_differences, shards, target, *MERGED)

    def _tables(self) -> Iterator[tuple[Source, str, str]]:
        """Source, database and name of each table except the shards."""
        for source in self.task.sources:
            for database, table in source.tables():
                yield source, database, table

    def _shards(self) -> Iterator[tuple[Source, str]]:
        for source in self.task.sources:
            for shard in source.shards:
                yield source, shard

    def _differences(self, source: Source, database: str, table: str) -> list[str]:
        silver = self.lakehouse.silver(database, table)
        if not is_table(silver):
            return [f"{database}.{table} is not in silver"]
        found = differences(source.server, database, table, self.spark.table(silver))
        return [f"{database}.{line}" for line in found]

    def _shard_differences(self, source: Source, shard: str) -> list[str]:
        silver = self.lakehouse.silver(*MERGED)
        if not is_table(silver):
            return [f"{shard}.t is not in silver"]
        name = str(Shard(source.source_id, shard, "t"))
        rows = self.spark.table(silver).where(F.col(silver_types.SHARD) == name)
        return [f"{shard}.{line}" for line in differences(source.server, shard, "t", rows)]


def _target_differences(source: Source, target: Server, database: str, table: str) -> list[str]:
    return [f"target: {database}.{line}" for line in table_differences(source.server, target, database, table)]
