"""The replay of one table: to the live silver table, to a new one, or to make silver anew.

docs/decisions/0008-replay.md has the reasons.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pyspark.sql import DataFrame

from dmdelta.engine.requests import SilverSide
from dmdelta.engine.standing_still import standing_still
from dmdelta.engine.table_past import TablePast
from dmdelta.engine.task import Task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.rules.routes import Route
from dmdelta.silver.deletions import deleted_keys
from dmdelta.silver.evolution import older_than
from dmdelta.silver.past import Stretch
from dmdelta.silver.quarantine import with_quarantined, without_quarantined
from dmdelta.silver.repair import (
    Damage,
    Standing,
    count_damage,
    damaged_rows,
    mend,
    mending_tag,
    rows_at,
    standing,
    swap,
)
from dmdelta.silver.replay import discard, replay_request, replay_stretches
from dmdelta.silver.request import ApplyRequest, ApplyResult, tag_of
from dmdelta.silver.survey import table_events
from dmdelta.silver.table import Condition, create_silver, silver_condition

log = get_logger(__name__)


class ReplayTo(Enum):
    """Where the rows go."""

    LIVE = "live"
    """The silver table: what the range wrote is put right there, what is newer stays."""
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
    """

    table: str
    to: ReplayTo = ReplayTo.LIVE
    begin: str | None = None
    end: str | None = None
    into: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did to one table.

    Attributes:
        place: the table that was written, or looked at.
        rows: row changes that were applied on the way.
        missing, different, extra: rows of the live table that were put right.
    """

    table: str
    place: str
    begin: Position
    end: Position
    rows: int
    missing: int = 0
    different: int = 0
    extra: int = 0


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """A stretch of a table's past is through: the `done`th of `stretches`."""

    table: str
    done: int
    stretches: int
    rows: int


Report = Callable[[ReplayProgress], object]


@dataclass(frozen=True, slots=True)
class TableReplay:
    """The replay of one table."""

    task: Task
    side: SilverSide
    name: TableName
    report: Report

    @property
    def past(self) -> TablePast:
        return TablePast(self.task, self.side, self.name)

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def run(self, request: ReplayRequest, begin: Position | None, end: Position | None, landed: Position) -> Replayed:
        if request.to is ReplayTo.NEW:
            assert end is not None
            assert request.into is not None
            return self._into(request.into, end)
        if self.side.table(self.name).merged:
            raise ConfigError(
                f"the rows of {self.shown} are merged with those of other tables in silver",
                hint="replay it --into a table of its own, or have it read again: "
                f"dmdelta snapshot SPEC --table {self.shown}",
            )
        if request.to is ReplayTo.REBUILD:
            return self._rebuild()
        assert begin is not None
        assert end is not None
        return self._mend(begin, min(end, landed))

    def _into(self, into: str, end: Position) -> Replayed:
        schema, point, table = into.partition(".")
        if not point or self.side.rules.route(*self.name).name == (schema, table):
            raise ConfigError(f"{into!r} is no name for a new table", hint="write --into schema.table")
        past = self.past.until(end)
        self.past.assert_settled(past, end)
        request = self._request(past, Route(schema, table), self.task.lakehouse)
        rows = self._build(request, past, anew=False)
        if silver_condition(self.task.spark, request.target) is Condition.ABSENT:
            create_silver(self.task.spark, request.target, self.past.schema_before(end), tag_of(request, 0, end, end))
        return Replayed(self.shown, request.target.place, past[0].begin, end, rows)

    def _rebuild(self) -> Replayed:
        target = self.side.table(self.name)
        at = standing(self.task.spark, target).position
        past = self.past.until(at)
        request = self._scratch(past, "rebuild", "")
        rows = self._build(request, past)  # the most of it, while the task goes on
        with standing_still(self.task.spec):
            now = standing(self.task.spark, target)
            past = self.past.until(now.position)
            rows += self._build(request, past)
            schema = self._schema_at(now)
            built = self.task.spark.table(request.target.place)
            kept = without_quarantined(self.task.spark, target, built, target.seen(schema))
            swap(self.task.spark, target, kept, target.seen(schema), self.task.run)
            discard(self.task.spark, request)
        return Replayed(self.shown, target.place, past[0].begin, now.position, rows)

    def _mend(self, begin: Position, end: Position) -> Replayed:
        """Look while the task goes on; only what is damaged is worth that it stands still."""
        target, spark = self.side.table(self.name), self.task.spark
        if not self._schema_at(standing(spark, target)).primary_key:
            raise ConfigError(
                f"{self.shown} has no key: nothing tells a row from another one like it",
                hint="replay it --into a new table, or have silver made anew: --rebuild",
            )
        damage, rows = self._compared(begin, end, standing(spark, target), mending=False)
        if damage:
            with standing_still(self.task.spec):
                damage, again = self._compared(begin, end, standing(spark, target), mending=True)
                rows += again
        return Replayed(self.shown, target.place, begin, end, rows, damage.missing, damage.different, damage.extra)

    def _compared(self, begin: Position, end: Position, at: Standing, *, mending: bool) -> tuple[Damage, int]:
        spark, target = self.task.spark, self.side.table(self.name)
        position = at.position
        begin, end = self.past.after_last_read(begin), min(end, position)
        if begin >= end:
            return Damage(), 0
        past: Sequence[Stretch] = (Stretch(begin, position, again=begin.epoch != position.epoch),)
        if self.past.is_partial(begin, position):
            past = self.past.until(position)  # images that lack columns make whole rows from the beginning on only
        request = self._scratch(past, "mend" if mending else "look", f"{begin}-{position}")
        rows = self._build(request, past)
        seen = target.seen(self._schema_at(at))
        live = with_quarantined(spark, target, rows_at(spark, target, at.version), seen)
        gone = deleted_keys(spark, replace(request, begin=begin, end=end), seen, live)
        # A replay without a row has made no table.
        made = silver_condition(spark, request.target) is Condition.PRESENT
        built = spark.table(request.target.place) if made else live.where("false")
        # No lower bound: rows of an XA transaction stand where they were prepared.
        touched = built.where(older_than(end))
        wrong = damaged_rows(live, touched, gone, seen)
        damage = count_damage(wrong)
        if damage and mending:
            mend(spark, target.place, wrong, seen.primary_key, lambda: mending_tag(spark, target, self.task.run))
        discard(spark, request)
        return damage, rows

    def rows_as_of(self, at: Standing, position: Position) -> DataFrame | None:
        """Silver's rows, and those kept apart, as they will be at a position behind `at`; None if that takes silver.

        Nothing is written to silver.

        Raises:
            DmdeltaError: as `replay_stretches`.
        """
        spark, begin, side = self.task.spark, at.position, self.side
        target, seen = side.table(self.name), side.table(self.name).seen(self._schema_at(at))
        live = with_quarantined(spark, target, rows_at(spark, target, at.version), seen)
        if begin >= position:
            return live
        events = table_events(spark, self.task.lakehouse, side.source_id, self.name, begin, position)
        if not events.row_count and not events.ddl:
            return live
        if events.partial or events.ddl or not seen.primary_key:
            return None
        past = (Stretch(begin, position, again=begin.epoch != position.epoch),)
        request = self._scratch(past, "as-of", str(position))
        self._build(request, past)
        gone = deleted_keys(spark, replace(request, begin=begin, end=position), seen, live)
        keys, columns = list(map(quote, seen.primary_key)), list(map(quote, live.columns))
        touched, built = gone.select(*keys), live.where("false")
        if silver_condition(spark, request.target) is Condition.PRESENT:
            built = spark.table(request.target.place).select(*columns)
            touched = touched.unionAll(built.select(*keys))
        kept = live.join(touched, list(seen.primary_key), "left_anti")
        return kept.select(*columns).unionAll(built)

    def _schema_at(self, at: Standing) -> TableSchema:
        return self.past.schema_before(at.position)

    def _scratch(self, past: Sequence[Stretch], use: str, what: str) -> ApplyRequest:
        """For a table of its own, among the task's metadata; the next replay of the same use takes its place.

        Args:
            use: those that are written to silver from are only used while the task stands still, by one process.
        """
        lakehouse = self.task.lakehouse
        name = f"{self.task.spec.name}.{self.side.source_id}.{self.shown}.{use}"
        apart = replace(lakehouse, silver_name=lakehouse.metadata_name)
        return self._request(past, Route("replay", name), apart, what)

    def _request(self, past: Sequence[Stretch], to: Route, lakehouse: Lakehouse, purpose: str = "") -> ApplyRequest:
        side, first = self.side, past[0].begin
        what = f"{side.task} {side.source_id} {self.shown} {to.name} {first} {purpose}"
        request = ApplyRequest(
            lakehouse=lakehouse,
            task=side.task,
            source_id=side.source_id,
            run=hashlib.sha256(what.encode()).hexdigest()[:32],
            schema=self.name[0],
            table=self.name[1],
            begin=first,
            end=past[-1].end,
            batch=0,
            flavor=side.flavor,
            rules=side.rules,
        )
        return replay_request(request, to)

    def _build(self, request: ApplyRequest, past: Sequence[Stretch], *, anew: bool = True) -> int:
        done = 0

        def told(stretch: Stretch, result: ApplyResult | None) -> None:
            nonlocal done
            done += 1
            rows = result.row_count if result else 0
            log.info("stretch replayed", table=self.shown, end=str(stretch.end), rows=rows)
            self.report(ReplayProgress(self.shown, done, len(past), rows))

        return replay_stretches(self.task.spark, request, past, told, anew=anew)
