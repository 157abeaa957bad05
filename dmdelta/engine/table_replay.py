"""The replay of one table: to the live silver table, to a new one, or to make silver anew.

docs/decisions/0008-replay.md has the reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame

from dmdelta.ddl.types import VERSION, silver_columns
from dmdelta.engine.requests import SilverSide
from dmdelta.engine.standing_still import standing_still
from dmdelta.engine.table_past import TablePast
from dmdelta.engine.table_scratch import Report, TableScratch
from dmdelta.engine.task import Task
from dmdelta.errors import ConfigError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.rules.routes import Route
from dmdelta.silver.deletions import deleted_keys
from dmdelta.silver.evolution import older_than, version_at
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
from dmdelta.silver.request import tag_of
from dmdelta.silver.shard_rows import seen_whole, shard_rows
from dmdelta.silver.survey import table_events
from dmdelta.silver.table import Condition, create_silver, silver_condition
from dmdelta.silver.target import Target


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
    def scratch(self) -> TableScratch:
        return TableScratch(self.task, self.side, self.name, self.report)

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
        return self._mend(begin, min(end, landed))

    def _into(self, into: str, end: Position) -> Replayed:
        schema, point, table = into.partition(".")
        if not point or self.target.route.name == (schema, table):
            raise ConfigError(f"{into!r} is no name for a new table", hint="write --into schema.table")
        past = self.past.until(end)
        self.past.assert_settled(past, end)
        request = self.scratch.request_to(past, Route(schema, table), self.task.lakehouse)
        rows = self.scratch.build(request, past, anew=False)
        if silver_condition(self.task.spark, request.target) is Condition.ABSENT:
            create_silver(self.task.spark, request.target, self.past.schema_before(end), tag_of(request, 0, end, end))
        return Replayed(self.shown, request.target.place, past[0].begin, end, rows)

    def _rebuild(self) -> Replayed:
        spark, target = self.task.spark, self.target
        at = standing(spark, target).position
        past = self.past.until(at)
        request = self.scratch.request(past, "rebuild", "")
        rows = self.scratch.build(request, past)  # the most of it, while the task goes on
        with standing_still(self.task.spec):
            now = standing(spark, target)
            past = self.past.until(now.position)
            rows += self.scratch.build(request, past)
            schema = self.past.schema_before(now.position)
            built = self.scratch.rows(request, self._shape(schema))
            kept = without_quarantined(spark, target, built, target.seen(schema))
            swap(spark, target, kept, target.seen(schema), self.task.run)
            self.scratch.discard(request)
        return Replayed(self.shown, target.place, past[0].begin, now.position, rows)

    def _shape(self, schema: TableSchema) -> DataFrame:
        """The columns that silver should have; a merged table has those that its shards have agreed on."""
        if self.target.merged:
            return self.task.spark.table(self.target.place)
        columns = silver_columns(self.target.seen(schema)).items()
        values = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in columns)
        return self.task.spark.sql(f"SELECT {values} WHERE false")

    def _mend(self, begin: Position, end: Position) -> Replayed:
        """Look while the task goes on; only what is damaged is worth that it stands still."""
        target, spark = self.target, self.task.spark
        if not self._seen_at(standing(spark, target)).primary_key:
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
        spark, target, position = self.task.spark, self.target, at.position
        begin, end = self.past.after_last_read(begin), min(end, position)
        if begin >= end:
            return Damage(), 0
        past: Sequence[Stretch] = (Stretch(begin, position, again=begin.epoch != position.epoch),)
        renamed = self.past.is_renamed(begin, position)
        if renamed or self.past.is_partial(begin, position):
            # A RENAME writes the whole table, and images that lack columns make whole rows from the beginning on only.
            past = self.past.until(position)
        request = self.scratch.request(past, "mend" if mending else "look", f"{begin}-{position}")
        rows = self.scratch.build(request, past)
        seen, live = self._seen_at(at), self._whole(at)
        built = self.scratch.rows(request, live)
        if renamed:
            gone = live.selectExpr(*map(quote, seen.primary_key), f"{version_at(position)} AS {VERSION}")
        else:
            gone = deleted_keys(spark, self.scratch.own_request(begin, end), seen, live)
            built = built.where(
                older_than(end)
            )  # no lower bound: rows of an XA transaction stand where they were prepared
        wrong = damaged_rows(live, built, gone, seen)
        damage = count_damage(wrong)
        if damage and mending:
            mend(spark, target.place, wrong, seen.primary_key, lambda: mending_tag(spark, target, self.task.run))
        self.scratch.discard(request)
        return damage, rows

    def rows_as_of(self, at: Standing, position: Position) -> DataFrame | None:
        """Silver's rows, and those kept apart, as they will be at a position behind `at`; None if that takes silver.

        Of a merged table, those of this source table alone, with all of the merged table's columns. Nothing is written
        to silver.

        Raises:
            DmdeltaError: as `replay_stretches`.
        """
        spark, begin, side, seen = self.task.spark, at.position, self.side, self._seen_at(at)
        live = self._whole(at)
        if begin >= position:
            return live
        events = table_events(spark, self.task.lakehouse, side.source_id, self.name, begin, position)
        if not events.row_count and not events.ddl:
            return live
        if events.partial or events.ddl or not seen.primary_key:
            return None
        past = (Stretch(begin, position, again=begin.epoch != position.epoch),)
        request = self.scratch.request(past, "as-of", str(position))
        self.scratch.build(request, past)
        gone = deleted_keys(spark, self.scratch.own_request(begin, position), seen, live)
        keys, built = list(map(quote, seen.primary_key)), self.scratch.rows(request, live)
        touched = gone.select(*keys).unionAll(built.select(*keys))
        kept = live.join(touched, list(seen.primary_key), "left_anti")
        return kept.select(*map(quote, live.columns)).unionAll(built)

    def _whole(self, at: Standing) -> DataFrame:
        """The source table's rows in silver, and those kept apart."""
        rows = shard_rows(self.target, rows_at(self.task.spark, self.target, at.version))
        return with_quarantined(self.task.spark, self.target, rows, self._seen_at(at))

    def _seen_at(self, at: Standing) -> TableSchema:
        """The table's structure as silver has it."""
        schema = self.past.schema_before(at.position)
        return seen_whole(self.target, schema, rows_at(self.task.spark, self.target, at.version))
