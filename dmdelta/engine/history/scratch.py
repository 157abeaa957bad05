"""A table's past applied to a table of its own: what every replay begins with, whatever its result is for."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from dmdelta.engine.task.task import Task
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.rules.routes import Route
from dmdelta.silver.apply.quarantine import Quarantine
from dmdelta.silver.apply.request import ApplyRequest, ApplyResult, read_request
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.lineage import ReplayRange
from dmdelta.silver.history.replay import discard, replay_ranges, replay_request
from dmdelta.silver.table.shard_rows import as_held, scratch_constants
from dmdelta.silver.table.table import Condition, silver_condition

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """A stretch of a table's past is through: the `done`th of `stretches`."""

    table: str
    done: int
    stretches: int
    rows: int


Report = Callable[[ReplayProgress], object]


@dataclass(frozen=True, slots=True)
class TableScratch:
    """Scratch tables for the replays of one source table.

    Attributes:
        guard: has the rows that fail go to the scratch table's own quarantine; None: all rows are in the table.
    """

    task: Task
    side: SilverContext
    name: TableName
    report: Report
    guard: Callable[[ApplyRequest], ApplyRequest] | None = None

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def request(self, past: Sequence[ReplayRange], use: str, what: str) -> ApplyRequest:
        """For a table of its own, among the task's metadata; the next replay of the same use takes its place.

        Args:
            use: those that are written to silver from are only used while the task is paused, by one process.
            what: what is replayed, besides the past's begin: the same replay continues where it was killed. Not if
                rows are guarded, whose quarantine has no position.

        Raises:
            LakehouseError: the quarantine cannot be emptied.
        """
        lakehouse = self.task.lakehouse
        name = f"{self.task.spec.name}.{self.side.source_id}.{self.shown}.{use}"
        apart = replace(lakehouse, silver_name=lakehouse.metadata_name)
        to = Route("replay", name, scratch_constants(self.side.table(self.name)))
        if self.guard is None:
            return self.request_to(past, to, apart, what)
        request = self.request_to(past, to, apart, f"{what} {self.task.run}")
        self._forget_apart(request)
        return request

    def request_to(
        self, past: Sequence[ReplayRange], to: Route, lakehouse: Lakehouse, purpose: str = ""
    ) -> ApplyRequest:
        """For any place; constant columns that the table's own route extracts stay."""
        first = past[0].begin
        what = f"{self.side.task} {self.side.source_id} {self.shown} {to.name} {first} {purpose}"
        request = self.own_request(first, past[-1].end)
        run = hashlib.sha256(what.encode()).hexdigest()[:32]
        made = replay_request(replace(request, context=replace(request.context, lakehouse=lakehouse, run=run)), to)
        return made if self.guard is None else self.guard(made)

    def own_request(self, begin: Position, end: Position) -> ApplyRequest:
        """For the table's own place in silver: what to look at."""
        return read_request(self.side, self.name, begin, end)

    def build(self, request: ApplyRequest, past: Sequence[ReplayRange], *, anew: bool = True) -> int:
        """Apply the past; how many row changes that were.

        Args:
            anew: what another replay has left there goes.

        Raises:
            DmdeltaError: as `replay_ranges`.
        """
        done = 0

        def told(stretch: ReplayRange, result: ApplyResult | None) -> None:
            nonlocal done
            done += 1
            rows = result.row_count if result else 0
            log.info("stretch replayed", table=self.shown, end=str(stretch.end), rows=rows)
            self.report(ReplayProgress(self.shown, done, len(past), rows))

        return replay_ranges(self.task.spark, request, past, told, anew=anew)

    def rows(self, request: ApplyRequest, held: DataFrame) -> DataFrame:
        """What was built, with the columns of a silver table (`held`). A replay without a row has made no table."""
        if silver_condition(self.task.spark, request.target) is not Condition.PRESENT:
            return held.where("false")
        return as_held(self.task.spark.table(request.target.place), held)

    def discard(self, request: ApplyRequest) -> None:
        """Take the rows out, those of the quarantine, too.

        Raises:
            LakehouseError: it cannot be written.
        """
        discard(self.task.spark, request)
        if self.guard is not None:
            self._forget_apart(request)

    def apart(self, request: ApplyRequest) -> DataFrame | None:
        """The rows in the quarantine of a scratch table; None: there are none.

        Raises:
            LakehouseError: it cannot be read.
        """
        quarantine = Quarantine.of(request.target)
        there = self.guard is not None and quarantine.has_rows(self.task.spark)
        return quarantine.rows(self.task.spark) if there else None

    def _forget_apart(self, request: ApplyRequest) -> None:
        quarantine = Quarantine.of(request.target)
        if quarantine.has_rows(self.task.spark):
            quarantine.forget(self.task.spark)
