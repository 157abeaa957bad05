"""The replay of one table: to the live silver table, to a new one, or to make silver anew.

docs/decisions/0008-replay.md has the reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame

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
from dmdelta.silver.history.lineage import ReplayRange
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
    """Where the rows go."""

    LIVE = "live"
    """The silver table: what the range wrote is repaired there, what is newer stays."""
    NEW = "into"
    """A new table: as the source's was at a position."""
    REBUILD = "rebuild"
    """A new content of the silver table, made from its beginning."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to replay.

    Attributes:
        table: `schema.table`, with `*` and `?` for several.
        begin, end: places in the log as people write them (`find_place`); None: the table's beginning, and where it is.
        into: `schema.table` of the new table.
        check: evaluate the result before any of it is written.
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
        check: evaluates the result before any of it is written; None: nothing does.
    """

    task: Task
    side: SilverContext
    name: TableName
    report: Report
    check: ReplayCheck | None = None

    @property
    def past(self) -> TablePast:
        return TablePast(self.task, self.side, self.name)

    @property
    def scratch(self) -> TableScratch:
        guard = self.check.guard(self.name) if self.check is not None else None
        return TableScratch(self.task, self.side, self.name, self.report, guard)

    @property
    def target(self) -> Target:
        return self.side.table(self.name)

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
            raise ConfigError(f"{into!r} is no name for a new table", hint="write --into schema.table")
        past = self.past.until(end)
        self.past.assert_settled(past, end)
        failing = self._judged_apart(past, end) if self.check is not None else []
        request = self.scratch.request_to(past, Route(schema, table), self.task.lakehouse)
        rows = self.scratch.build(request, past, anew=False)
        if silver_condition(self.task.spark, request.target) is Condition.ABSENT:
            create_silver(self.task.spark, request.target, self.past.schema_before(end), tag_of(request, 0, end, end))
        return Replayed(self.shown, request.target.place, past[0].begin, end, rows, failing=tuple(map(shown, failing)))

    def _judged_apart(self, past: Sequence[ReplayRange], end: Position) -> list[Result]:
        """What the table that `--into` makes would fail, evaluated in a scratch table."""
        request = self.scratch.request(past, "check", str(end))
        self.scratch.build(request, past)
        failing = self._judge_whole(request, past[0].begin, end)
        self.scratch.discard(request)
        return failing

    def _rebuild(self) -> Replayed:
        spark, target = self.task.spark, self.target
        at = table_version(spark, target).position
        past = self.past.until(at)
        request = self.scratch.request(past, "rebuild", "")
        rows = self.scratch.build(request, past)  # most of it, while the task runs
        failing = self._judge_whole(request, past[0].begin, at)
        with exclusive_access(self.task.spec):
            now = table_version(spark, target).position
            past = self.past.until(now)
            rows += self.scratch.build(request, past)
            if now != at:
                failing = self._judge_whole(request, past[0].begin, now)
            schema = self.past.schema_before(now)
            built, seen = self.scratch.rows(request, shape_of(spark, target, schema)), target.silver_schema(schema)
            if self.check is None:
                built = without_quarantined(spark, target, built, seen)
            else:
                self._keep_apart(request, schema)
            swap(spark, target, built, seen, self.task.run)
            self.scratch.discard(request)
        return Replayed(self.shown, target.place, past[0].begin, now, rows, failing=tuple(map(shown, failing)))

    def _judge_whole(self, request: ApplyRequest, begin: Position, end: Position) -> list[Result]:
        """What the result of a replay fails; nothing if nobody asked.

        Raises:
            QualityError: it must not be written.
        """
        if self.check is None:
            return []
        schema = self.past.schema_before(end)
        held = shape_of(self.task.spark, self.target, schema)
        own, seen = self.scratch.own_request(begin, end), seen_whole(self.target, schema, held)
        rows = self.scratch.rows(request, held)
        apart = self.scratch.apart(request)
        return self.check.assert_passes(self.name, Scope.TABLE, PastState(own, end, seen, rows, rows), apart)

    def _keep_apart(self, request: ApplyRequest, schema: TableSchema) -> None:
        """Have the rows that a rebuild has quarantined in the silver table's quarantine, and no others."""
        spark, quarantine, apart = self.task.spark, Quarantine.of(self.target), self.scratch.apart(request)
        if quarantine.has_rows(spark):
            quarantine.forget(spark)
        if apart is not None:
            quarantine.adopt(spark, adopted(apart, request.target, self.target, schema))

    def rows_as_of(self, at: TableVersion, position: Position) -> DataFrame | None:
        """Silver's rows, and those in quarantine, as they will be at a position behind `at`; None if that takes silver.

        Of a merged table, those of this source table alone, with all of the merged table's columns. Nothing is written
        to silver.

        Raises:
            DmdeltaError: as `replay_stretches`.
        """
        spark, begin, side = self.task.spark, at.position, self.side
        seen, live = whole_at(spark, self.target, at, self.past.schema_before(at.position))
        if begin >= position:
            return live
        events = table_events(spark, self.task.lakehouse, side.source_id, self.name, begin, position)
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
        kept = live.join(touched, list(seen.primary_key), "left_anti")
        return kept.select(*map(quote, live.columns)).unionAll(built)
