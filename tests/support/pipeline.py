"""The pipeline over recorded binlogs in one Spark session: land what is new, then apply it to every table.

The same stages that `dmdelta run` loops over, once and in the test's own process: a JVM for each matrix would take
longer than the matrices.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import Landed, LandingSource, land, newest_landed, open_bronze, plan_landing
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.schema import TableSchema
from dmdelta.rules.block_allow_list import BlockAllowList
from dmdelta.segments import list_segments
from dmdelta.silver.apply import ApplyRequest, apply_table
from dmdelta.silver.survey import tables_with_events
from tests.support.diff import Difference, differences
from tests.support.servers import Server

TASK = "matrix"
AT_ONCE = 3


@dataclass
class Pipeline:
    """One task's lakehouse below `root`.

    Attributes:
        refused: the error of each table that silver refused to go on with; it is left alone from then on.
    """

    spark: SparkSession
    root: Path
    refused: dict[tuple[str, str], DmdeltaError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lakehouse = Lakehouse(root=str(self.root))
        register(self.spark)
        open_bronze(self.spark, self.lakehouse.bronze, TASK)

    def catch_up(
        self,
        archive: Path,
        source_id: str,
        databases: Sequence[str],
        flavor: str = "mysql",
        structures: Callable[[], Sequence[TableSchema]] = tuple,
        apply_to: Collection[str] | None = None,
    ) -> None:
        """Land every new file of an archive and apply it, to the tables `apply_to` if given; `structures` as in `land`."""
        source = LandingSource(
            TASK,
            source_id,
            "test",
            self.lakehouse.bronze,
            BlockAllowList(do_dbs=tuple(databases)),
            flavor,
        )
        landed = newest_landed(self.spark, source)
        segments = list_segments(archive, source_id)
        while (batch := plan_landing(segments, landed)) is not None:
            landed = land(self.spark, source, batch, landed, structures())
            self._apply(source_id, landed, apply_to)

    def bronze(self, source_id: str) -> DataFrame:
        return self.spark.read.table(self.lakehouse.bronze).where(f"source_id = '{source_id}'")

    def silver(self, schema: str, table: str) -> DataFrame:
        return self.spark.read.table(self.lakehouse.silver(schema, table))

    def differences(self, server: Server, schema: str, table: str) -> list[Difference]:
        """What differs between a source table and silver; a refusal is a difference too."""
        if (schema, table) in self.refused:
            return [Difference(table, f"refused: {self.refused[schema, table]}")]
        return differences(server, schema, table, self.silver(schema, table))

    def _apply(self, source_id: str, landed: Landed, apply_to: Collection[str] | None) -> None:
        found = tables_with_events(self.spark, self.lakehouse, source_id, landed.begin, landed.end)
        tables = [table for table in found if apply_to is None or table.table in apply_to]

        def apply(name: tuple[str, str]) -> None:
            request = ApplyRequest(
                self.lakehouse, TASK, source_id, "test", *name, landed.begin, landed.end, landed.batch
            )
            try:
                apply_table(clone_session(self.spark), request)
            except DmdeltaError as error:
                self.refused[name] = error

        names = [(table.schema, table.table) for table in tables]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(apply, [name for name in names if name not in self.refused]))
