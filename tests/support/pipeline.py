"""The pipeline over recorded binlogs in one Spark session: land new files, then apply them to every table.

Runs the stages of `dmdelta run` once, in the test's own process: starting a JVM for each matrix would take
longer than the matrices themselves.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dmdelta.binlog.rows.ddl_scan import scan_statements
from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import LandingBatch, land, open_bronze, plan_landing
from dmdelta.bronze.progress import BATCH_BYTES, LandedRange, newest_landed
from dmdelta.changelog.batch_memory import MEMORY_BYTES, BatchMemory
from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.structure_plan import Catalog, LogAhead, plan_structures
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.gtid import Flavor
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import StructureFrom, TableSchema
from dmdelta.model.segment import Segment
from dmdelta.rules import NO_RULES, BlockAllowList, SourceRules
from dmdelta.segments import list_segments
from dmdelta.silver.apply.apply import apply_group
from dmdelta.silver.apply.renames import plan_groups
from dmdelta.silver.apply.request import ApplyRequest, RowsPath
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.range_profile import TableEvents, tables_with_events
from dmdelta.silver.table.state import silver_state
from tests.support.diff import Difference, differences
from tests.support.servers import Server

TASK = "matrix"
AT_ONCE = 3


@dataclass
class Pipeline:
    """One task's lakehouse below `root`.

    Attributes:
        refused: the error of each table that silver has refused; the table is not applied to again.
        again_after: errors that simulate the end of a process: applying resumes as in a new process.
        recorded: the structures in bronze of each source, as the landing loop tracks them.
        attempt: called before a table is applied.
        memory_bytes: capacity of each source's memory, as in a run; 0: everything is read from bronze.
        batch_bytes: maximum bytes of a batch.
        paths: how many ranges of tables were read on each path.
    """

    spark: SparkSession
    root: Path
    refused: dict[tuple[str, str], DmdeltaError] = field(default_factory=dict)
    again_after: tuple[type[BaseException], ...] = ()
    attempt: Callable[[], None] = lambda: None
    rules: SourceRules = NO_RULES
    known: dict[str, Structures] = field(default_factory=dict)
    recorded: dict[str, RecordedStructures] = field(default_factory=dict)
    memory_bytes: int = MEMORY_BYTES
    batch_bytes: int = BATCH_BYTES
    paths: Counter[RowsPath] = field(default_factory=Counter)
    _memories: dict[str, BatchMemory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lakehouse = Lakehouse(root=str(self.root))
        register(self.spark)
        open_bronze(self.spark, self.lakehouse.bronze, TASK)

    def catch_up(
        self,
        archive: Path,
        source_id: str,
        databases: Sequence[str],
        flavor: Flavor = "mysql",
        structures: Callable[[], Sequence[TableSchema]] = tuple,
        apply_to: Collection[str] | None = None,
    ) -> None:
        """Land every new file of an archive and apply it, to the tables `apply_to` if given.

        `structures`: those of information_schema at the archive's end; without, only statements determine them.
        """
        rules = replace(self.rules, source_id=source_id, allow_list=BlockAllowList(do_dbs=tuple(databases)))
        source = SourceContext(self.lakehouse, TASK, source_id, "test", flavor, rules, self.memory(source_id))
        landed = newest_landed(self.spark, source)
        segments = list_segments(archive, source_id)
        while (batch := plan_landing(segments, landed, self.batch_bytes)) is not None:
            known = self._structures(source, batch, segments, structures())
            recorded = self.recorded.setdefault(source_id, RecordedStructures())
            landed = land(self.spark, source, batch, landed, known, recorded=recorded)
            self._apply(source, landed, apply_to)
            source.memory.release(landed.end)

    def memory(self, source_id: str) -> BatchMemory:
        """The newest landed rows of a source."""
        return self._memories.setdefault(source_id, BatchMemory(self.memory_bytes))

    def _structures(
        self, source: SourceContext, batch: LandingBatch, segments: Sequence[Segment], present: Sequence[TableSchema]
    ) -> list[StructureFrom]:
        """The structures of tables by position, from statements and the current structures; nothing is persisted."""
        statements = []
        for segment in segments:
            if segment.end_position > batch.begin:
                with open(segment.path, "rb") as stream:
                    statements += scan_statements(stream, segment)
        tables = {schema.name: TrackedTable(schema, origin=Origin.INFORMATION_SCHEMA) for schema in present}
        catalog = Catalog(segments[-1].end_position, Structures(tables), frozenset(tables)) if tables else None
        ahead = LogAhead(batch.begin, batch.end, statements)
        known = self.known.get(source.source_id, Structures())
        plan = plan_structures(known, ahead, catalog, mariadb=source.flavor == "mariadb")
        self.known[source.source_id] = plan.after
        return plan.structures(batch.begin)

    def context(self, source_id: str, flavor: Flavor = "mysql") -> SilverContext:
        memory = self.memory(source_id)
        return SilverContext(self.lakehouse, TASK, source_id, "test", flavor, self.rules, memory)

    def bronze(self, source_id: str) -> DataFrame:
        return self.spark.read.table(self.lakehouse.bronze).where(f"source_id = '{source_id}'")

    def silver(self, schema: str, table: str) -> DataFrame:
        return self.spark.read.table(self.lakehouse.silver(schema, table))

    def differences(self, server: Server, schema: str, table: str) -> list[Difference]:
        """The differences between a source table and silver; a refusal is a difference."""
        if (schema, table) in self.refused:
            return [Difference(table, f"refused: {self.refused[schema, table]}")]
        return differences(server, schema, table, self.silver(schema, table))

    def _apply(self, source: SourceContext, landed: LandedRange, apply_to: Collection[str] | None) -> None:
        found = tables_with_events(self.spark, source, landed.begin, landed.end)
        tables = [table for table in found if apply_to is None or table.table in apply_to]
        tables = [table for table in tables if self.rules.wanted(*table.name)]

        def apply(group: Sequence[TableEvents]) -> None:
            self.attempt()
            while True:
                try:
                    spark = clone_session(self.spark)
                    results = apply_group(spark, group, [request(spark, table) for table in group])
                    self.paths.update(result.path for result in results if result.path is not None)
                except self.again_after:
                    continue
                except DmdeltaError as error:
                    self.refused.update({table.name: error for table in group})
                return

        def request(spark: SparkSession, table: TableEvents) -> ApplyRequest:
            context = self.context(source.source_id, source.flavor)
            commit = silver_state(spark, context.table(table.name))
            begin = max(landed.begin, commit.position or landed.begin)
            schema, name = table.name
            return ApplyRequest(
                context=context, schema=schema, table=name, begin=begin, end=landed.end, batch=landed.batch
            )

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(apply, plan_groups([table for table in tables if table.name not in self.refused])))
