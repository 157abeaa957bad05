"""The replay of a range into the live silver table: what differs from what bronze leads to is repaired.

docs/decisions/0008-replay.md has the reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.types.silver_types import VERSION
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.history.scratch import TableScratch
from dmdelta.engine.history.states import PastState
from dmdelta.engine.replay.check import ReplayCheck, adopted, rows_apart, shown
from dmdelta.errors import ConfigError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.results import Result, Scope
from dmdelta.silver.apply.quarantine import Quarantine, with_quarantined
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.history.deletions import deleted_keys
from dmdelta.silver.history.lineage import ReplayRange
from dmdelta.silver.history.repair import (
    GONE,
    Damage,
    TableVersion,
    count_damage,
    damaged_rows,
    repair_rows,
    repair_tag,
    rows_at,
    table_version,
)
from dmdelta.silver.schema.evolution import older_than, version_at
from dmdelta.silver.table.shard_rows import seen_whole, shard_rows
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did to one table.

    Attributes:
        place: the table that was written, or looked at.
        rows: row changes that were applied on the way.
        missing, different, extra: rows of the live table that were repaired.
        failing: what the result does not fulfil, without stopping anything, as lines; only if it was evaluated.
    """

    table: str
    place: str
    begin: Position
    end: Position
    rows: int
    missing: int = 0
    different: int = 0
    extra: int = 0
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compared:
    """What comparing a range has found: damage, row changes on the way, and what the result fails."""

    damage: Damage = field(default_factory=Damage)
    rows: int = 0
    failing: Sequence[Result] = ()


@dataclass(frozen=True, slots=True)
class TableRepair:
    """The repair of one table.

    Attributes:
        check: evaluates the result before any of it is written; None: nothing does.
    """

    scratch: TableScratch
    past: TablePast
    check: ReplayCheck | None = None

    @property
    def _target(self) -> Target:
        return self.scratch.side.table(self.scratch.name)

    def run(self, begin: Position, end: Position) -> Replayed:
        """Compare while the task runs; it is paused only to repair damage."""
        target, spark = self._target, self.scratch.task.spark
        if not self.past.schema_before(table_version(spark, target).position).primary_key:
            raise ConfigError(
                f"{self.scratch.shown} has no key: nothing tells a row from another one like it",
                hint="replay it --into a new table, or have silver made anew: --rebuild",
            )
        found = self._compared(begin, end, table_version(spark, target), mending=False)
        rows = found.rows
        if found.damage:
            with exclusive_access(self.scratch.task.spec):
                found = self._compared(begin, end, table_version(spark, target), mending=True)
                rows += found.rows
        damage = found.damage
        counts = damage.missing, damage.different, damage.extra
        return Replayed(
            self.scratch.shown, target.place, begin, end, rows, *counts, failing=tuple(map(shown, found.failing))
        )

    def _compared(self, begin: Position, end: Position, at: TableVersion, *, mending: bool) -> _Compared:
        spark, target, position = self.scratch.task.spark, self._target, at.position
        begin, end = self.past.after_last_read(begin), min(end, position)
        if begin >= end:
            return _Compared()
        past: Sequence[ReplayRange] = (ReplayRange(begin, position, again=begin.epoch != position.epoch),)
        renamed = self.past.is_renamed(begin, position)
        if renamed or self.past.is_partial(begin, position):
            # A RENAME writes the whole table, and images that lack columns make whole rows from the beginning on only.
            past = self.past.until(position)
        request = self.scratch.request(past, "mend" if mending else "look", f"{begin}-{position}")
        rows = self.scratch.build(request, past)
        seen, live = whole_at(spark, target, at, self.past.schema_before(position))
        built, own = self.scratch.rows(request, live), self.scratch.own_request(begin, end)
        apart = self.scratch.apart(request)
        failing: list[Result] = []
        if self.check is not None:
            scope = Scope.TABLE if renamed else Scope.RANGE
            failing = self.check.assert_passes(
                self.scratch.name, scope, PastState(own, position, seen, built, built), apart
            )
        kept = rows_apart(apart, seen, live) if apart is not None else None
        expected = built if kept is None else built.unionAll(kept)
        if renamed:
            gone = live.selectExpr(*map(quote, seen.primary_key), f"{version_at(position)} AS {VERSION}")
        else:
            gone = deleted_keys(spark, own, seen, live)
            # No lower bound: rows of an XA transaction stand where they were prepared.
            expected = expected.where(older_than(end))
        wrong = damaged_rows(live, expected, gone, seen)
        damage = count_damage(wrong)
        if damage and mending:
            parted = _parted(wrong, kept, seen) if kept is not None else wrong
            repair_rows(
                spark, target.place, parted, seen.primary_key, lambda: repair_tag(spark, target, self.scratch.task.run)
            )
            if apart is not None:
                self._keep_apart(request, wrong, apart)
        self.scratch.discard(request)
        return _Compared(damage, rows, failing)

    def _keep_apart(self, request: ApplyRequest, wrong: DataFrame, apart: DataFrame) -> None:
        """Put those of the wrong rows in quarantine that belong there."""
        versions = wrong.where(f"NOT {GONE}").select(F.col(VERSION))
        chosen, schema = apart.join(versions, VERSION, "left_semi"), self.past.schema_before(request.end)
        rows = adopted(chosen, request.target, self._target, schema)
        Quarantine.of(self._target).adopt(self.scratch.task.spark, rows)


def whole_at(
    spark: SparkSession, target: Target, at: TableVersion, schema: TableSchema
) -> tuple[TableSchema, DataFrame]:
    """A source table's structure as silver has it, and its rows there, with those that are quarantined.

    Args:
        schema: the source table's structure.

    Raises:
        LakehouseError: silver cannot be read.
    """
    held = rows_at(spark, target, at.version)
    seen = seen_whole(target, schema, held)
    return seen, with_quarantined(spark, target, shard_rows(target, held), seen)


def _parted(wrong: DataFrame, kept: DataFrame, seen: TableSchema) -> DataFrame:
    """The rows of `damaged_rows`, of which silver loses those that are quarantined."""
    keys = list(seen.primary_key)
    marked = kept.select(*map(quote, keys)).selectExpr("*", "true AS _dm_apart")
    joined = wrong.join(marked, keys, "left").withColumn(GONE, F.expr(f"{GONE} OR _dm_apart IS NOT NULL"))
    return joined.select(*map(quote, wrong.columns))
