"""Replays one table: into the live silver table, into a new table, or to rebuild the silver table.

docs/decisions/0008-replay.md has the reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame

from dmdelta.changelog.row_keys import without_keys
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.history.scratch import Report, TableScratch
from dmdelta.engine.history.states import PastState
from dmdelta.engine.replay.check import ReplayCheck, adopted, shown
from dmdelta.engine.replay.repair import Replayed, TableRepair, whole_at
from dmdelta.engine.task.task import Task
from dmdelta.errors import ConfigError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.results import Result, Scope
from dmdelta.rules.routes import Route
from dmdelta.silver.apply.quarantine import Quarantine, without_quarantined
from dmdelta.silver.apply.request import ApplyRequest, tag_of
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.deletions import deleted_keys
from dmdelta.silver.history.lineage import ReplayRange, begins_as
from dmdelta.silver.history.repair import (
    TableVersion,
    swap,
    table_version,
)
from dmdelta.silver.schema.range_profile import table_events
from dmdelta.silver.table.shard_rows import seen_whole, shape_of
from dmdelta.silver.table.table import Condition, create_silver, silver_condition
from dmdelta.silver.table.target import Target


class ReplayTo(Enum):
    """The destination of a replay."""

    LIVE = "live"
    """The silver table: rows that the range wrote are repaired, newer rows are kept."""
    NEW = "into"
    """A new table, with the rows of the source table at a position."""
    REBUILD = "rebuild"
    """The silver table: its content is replaced by a replay of its whole history."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to replay.

    Attributes:
        table: `schema.table`; `*` and `?` match several.
        begin, end: places in the log (`find_place`); None: the table's beginning, and its current position.
        into: `schema.table` of the new table.
        check: evaluate the result before it is written.
    """

    table: str
    to: ReplayTo = ReplayTo.LIVE
    begin: str | None = None
    end: str | None = None
    into: str | None = None
    source: str | None = None
    check: bool = False


@dataclass(frozen=True, slots=True)
class TableReplay:
    """The replay of one table.

    Attributes:
        check: evaluates the result before it is written; None: no evaluation.
    """

    task: Task
    context: SilverContext
    name: TableName
    report: Report
    check: ReplayCheck | None = None

    @property
    def past(self) -> TablePast:
        return TablePast(self.task, self.context, self.name)

    @property
    def scratch(self) -> TableScratch:
        guard = self.check.guard(self.name) if self.check is not None else None
        return TableScratch(self.task, self.context, self.name, self.report, guard)

    @property
    def target(self) -> Target:
        return self.context.table(self.name)

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def run(self, request: ReplayRequest, begin: Position | None, end: Position | None, landed: Position) -> Replayed:
        if request.to is ReplayTo.NEW:
            assert end is not None
            assert request.into is not None
            return self._into(request.into, end)
        if request.to is ReplayTo.REBUILD:
            return self._rebuild()
        assert begin is not None
        assert end is not None
        return TableRepair(self.scratch, self.past, self.check).run(begin, min(end, landed))

    def _into(self, into: str, end: Position) -> Replayed:
        schema, point, table = into.partition(".")
        if not point or self.target.route.name == (schema, table):
            raise ConfigError(f"{into!r} is not a valid name for a new table", hint="use --into schema.table")
        past = self.past.until(end)
        self.past.assert_settled(past, end)
        failing = self._evaluate_scratch(past, end) if self.check is not None else []
        request = self.scratch.request_to(past, Route(schema, table), self.task.lakehouse)
        rows = self.scratch.build(request, past, discard_previous=False)
        if silver_condition(self.task.spark, request.target) is Condition.ABSENT:
            create_silver(self.task.spark, request.target, self.past.schema_before(end), tag_of(request, 0, end, end))
        return Replayed(self.shown, request.target.place, past[0].begin, end, rows, failing=tuple(map(shown, failing)))

    def _evaluate_scratch(self, past: Sequence[ReplayRange], end: Position) -> list[Result]:
        """Evaluate the table that `--into` creates in a scratch table. Returns the failing results."""
        request = self.scratch.request(past, "check", str(end))
        self.scratch.build(request, past)
        failing = self._evaluate_table(request, past[0].begin, end)
        self.scratch.discard(request)
        return failing

    def _rebuild(self) -> Replayed:
        spark, target = self.task.spark, self.target
        at = table_version(spark, target).position
        past = self.past.until(at)
        request = self.scratch.request(past, "rebuild", "")
        rows = self.scratch.build(request, past)  # most of the history, while the task runs
        failing = self._evaluate_table(request, past[0].begin, at)
        with exclusive_access(self.task.spec):
            now = table_version(spark, target).position
            before, past = past, self.past.until(now)
            restarted = not begins_as(past, before)
            if restarted:  # a snapshot or a RENAME replaced the rows meanwhile
                rows, request = 0, self.scratch.request(past, "rebuild", "")
            rows += self.scratch.build(request, past)
            if restarted or now != at:
                failing = self._evaluate_table(request, past[0].begin, now)
            schema = self.past.schema_before(now)
            built, seen = self.scratch.rows(request, shape_of(spark, target, schema)), target.silver_schema(schema)
            if self.check is None:
                built = without_quarantined(spark, target, built, seen)
            else:
                self._replace_quarantine(request, schema)
            swap(spark, target, built, seen, self.task.run)
            self.scratch.discard(request)
        return Replayed(self.shown, target.place, past[0].begin, now, rows, failing=tuple(map(shown, failing)))

    def _evaluate_table(self, request: ApplyRequest, begin: Position, end: Position) -> list[Result]:
        """Evaluate the result of a replay. Returns the failing results; empty without `check`.

        Raises:
            QualityError: an expectation with the action `stop` fails.
        """
        if self.check is None:
            return []
        schema = self.past.schema_before(end)
        held = shape_of(self.task.spark, self.target, schema)
        own, seen = self.scratch.own_request(begin, end), seen_whole(self.target, schema, held)
        rows = self.scratch.rows(request, held)
        quarantined = self.scratch.quarantined(request)
        return self.check.assert_passes(self.name, Scope.TABLE, PastState(own, end, seen, rows, rows), quarantined)

    def _replace_quarantine(self, request: ApplyRequest, schema: TableSchema) -> None:
        """Replace the content of the silver table's quarantine by the rows that a rebuild has quarantined."""
        spark, quarantine, quarantined = self.task.spark, Quarantine.of(self.target), self.scratch.quarantined(request)
        if quarantine.has_rows(spark):
            quarantine.forget(spark)
        if quarantined is not None:
            quarantine.adopt(spark, adopted(quarantined, request.target, self.target, schema))

    def rows_as_of(self, at: TableVersion, position: Position) -> DataFrame | None:
        """Silver's rows and the quarantined ones as of a position after `at`; None if only silver can compute them.

        Of a merged table, only the rows of this source table, with all columns of the merged table. Does not write to
        silver.

        Raises:
            DmdeltaError: as `replay_ranges`.
        """
        spark, begin, context = self.task.spark, at.position, self.context
        seen, live = whole_at(spark, self.target, at, self.past.schema_before(at.position))
        if begin >= position:
            return live
        events = table_events(spark, context, self.name, begin, position)
        if not events.row_count and not events.ddl:
            return live
        if events.partial or events.ddl or not seen.primary_key:
            return None
        past = (ReplayRange(begin, position, again=begin.epoch != position.epoch),)
        request = self.scratch.request(past, "as-of", str(position))
        self.scratch.build(request, past)
        gone = deleted_keys(spark, self.scratch.own_request(begin, position), seen, live)
        keys, built = list(map(quote, seen.primary_key)), self.scratch.rows(request, live)
        touched = gone.select(*keys).unionAll(built.select(*keys))
        kept = without_keys(live, touched, seen)
        return kept.select(*map(quote, live.columns)).unionAll(built)
