"""Scratch tables: every replay first applies a table's history to one of them."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from dmdelta import __version__
from dmdelta.engine.task.task import Task
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules
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
    """Progress of a replay: `done` of `stretches` ranges are applied."""

    table: str
    done: int
    stretches: int


Report = Callable[[ReplayProgress], object]


@dataclass(frozen=True, slots=True)
class TableScratch:
    """Scratch tables for the replays of one source table.

    Attributes:
        guard: sends failing rows to the scratch table's own quarantine; None: the table gets all rows.
    """

    task: Task
    context: SilverContext
    name: TableName
    report: Report
    guard: Callable[[ApplyRequest], ApplyRequest] | None = None

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def request(self, past: Sequence[ReplayRange], use: str, what: str) -> ApplyRequest:
        """A request to write a scratch table in the metadata schema; the next replay with the same `use` replaces it.

        Args:
            use: part of the table's name. A scratch table that silver is written from is used by one process only,
                while the task is paused.
            what: identifies the replay, besides the table, the position where its history begins, the rules and
                dmdelta's version: the same replay resumes where it was killed. It starts over if rows are guarded,
                because their quarantine has no position.

        Raises:
            LakehouseError: the quarantine cannot be emptied.
        """
        lakehouse = self.task.lakehouse
        name = f"{self.task.spec.name}.{self.context.source_id}.{self.shown}.{use}"
        scratch_lakehouse = replace(lakehouse, silver_name=lakehouse.metadata_name)
        to = Route("replay", name, scratch_constants(self.context.table(self.name)))
        what = f"{what} {__version__}"
        if self.guard is None:
            return self.request_to(past, to, scratch_lakehouse, what)
        request = self.request_to(past, to, scratch_lakehouse, f"{what} {self.task.run}")
        self._clear_quarantine(request)
        return request

    def request_to(
        self, past: Sequence[ReplayRange], to: Route, lakehouse: Lakehouse, purpose: str = ""
    ) -> ApplyRequest:
        """A request to write any table; constant columns that the table's own route extracts are kept.

        A replay under other rules or other overrides of statements is another replay.
        """
        first, named = past[0].begin, ".".join(past[0].table or self.name)
        what = f"{self.context.task} {self.context.source_id} {self.shown} {to.name} {named} {first} {purpose}"
        what = f"{what} {_text_of(self.context.rules)}"
        request = self.own_request(first, past[-1].end)
        run = hashlib.sha256(what.encode()).hexdigest()[:32]
        replayed = replay_request(replace(request, context=replace(request.context, lakehouse=lakehouse, run=run)), to)
        return replayed if self.guard is None else self.guard(replayed)

    def own_request(self, begin: Position, end: Position) -> ApplyRequest:
        """A request to read the table's own silver table."""
        return read_request(self.context, self.name, begin, end)

    def build(self, request: ApplyRequest, past: Sequence[ReplayRange], *, discard_previous: bool = True) -> int:
        """Apply the history. Returns the number of row changes.

        Args:
            discard_previous: delete what another replay has left in the table.

        Raises:
            DmdeltaError: as `replay_ranges`.
        """
        done = 0

        def report(part: ReplayRange, result: ApplyResult | None) -> None:
            nonlocal done
            done += 1
            rows = result.row_count if result else 0
            log.info("range replayed", table=self.shown, end=str(part.end), rows=rows)
            self.report(ReplayProgress(self.shown, done, len(past)))

        return replay_ranges(self.task.spark, request, past, report, discard_previous=discard_previous)

    def rows(self, request: ApplyRequest, held: DataFrame) -> DataFrame:
        """The scratch table's rows, with the columns of a silver table (`held`); none if the replay had no rows."""
        if silver_condition(self.task.spark, request.target) is not Condition.PRESENT:
            return held.where("false")
        return as_held(self.task.spark.table(request.target.place), held)

    def discard(self, request: ApplyRequest) -> None:
        """Delete the rows of the scratch table and of its quarantine.

        Raises:
            LakehouseError: a table cannot be written.
        """
        discard(self.task.spark, request)
        if self.guard is not None:
            self._clear_quarantine(request)

    def quarantined(self, request: ApplyRequest) -> DataFrame | None:
        """The rows in the quarantine of a scratch table; None if it is empty.

        Raises:
            LakehouseError: it cannot be read.
        """
        quarantine = Quarantine.of(request.target)
        has_rows = self.guard is not None and quarantine.has_rows(self.task.spark)
        return quarantine.rows(self.task.spark) if has_rows else None

    def _clear_quarantine(self, request: ApplyRequest) -> None:
        quarantine = Quarantine.of(request.target)
        if quarantine.has_rows(self.task.spark):
            quarantine.forget(self.task.spark)


def _text_of(rules: SourceRules) -> str:
    """A text that is equal for equal rules, in whichever order the overrides of statements were read.

    Other sources of the task do not matter to a replay.
    """
    return f"{replace(rules, operators={}, only_source=True)} {sorted(rules.operators.items())}"
