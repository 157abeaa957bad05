"""Replays a range into the live silver table: repairs the rows that differ from the result of the replay.

docs/decisions/0008-replay.md has the reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.row_keys import same_key, without_keys
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
    """The result of a replay of one table.

    Attributes:
        place: the table that was written or compared.
        rows: number of row changes that were applied.
        missing, different, extra: rows of the live table that were repaired.
        failing: one line for each failing expectation without the action `stop`; empty without `check`.
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
    """The result of comparing a range: damage, applied row changes, and failing expectations."""

    damage: Damage = field(default_factory=Damage)
    rows: int = 0
    failing: Sequence[Result] = ()


@dataclass(frozen=True, slots=True)
class TableRepair:
    """The repair of one table.

    Attributes:
        check: evaluates the result before it is written; None: no evaluation.
    """

    scratch: TableScratch
    past: TablePast
    check: ReplayCheck | None = None

    @property
    def _target(self) -> Target:
        return self.scratch.context.table(self.scratch.name)

    def run(self, begin: Position, end: Position) -> Replayed:
        """Compare while the task runs; the task is paused only to repair damage."""
        target, spark = self._target, self.scratch.task.spark
        if not self.past.schema_before(table_version(spark, target).position).primary_key:
            raise ConfigError(
                f"{self.scratch.shown} has no key: identical rows cannot be distinguished",
                hint="replay it --into a new table, or use --rebuild",
            )
        compared = self._compared(begin, end, table_version(spark, target), repairing=False)
        rows = compared.rows
        if compared.damage:
            with exclusive_access(self.scratch.task.spec):
                compared = self._compared(begin, end, table_version(spark, target), repairing=True)
                rows += compared.rows
        damage = compared.damage
        return Replayed(
            self.scratch.shown,
            target.place,
            begin,
            end,
            rows,
            missing=damage.missing,
            different=damage.different,
            extra=damage.extra,
            failing=tuple(map(shown, compared.failing)),
        )

    def _compared(self, begin: Position, end: Position, at: TableVersion, *, repairing: bool) -> _Compared:
        spark, target, position = self.scratch.task.spark, self._target, at.position
        begin, end = self.past.after_last_read(begin), min(end, position)
        if begin >= end:
            return _Compared()
        past: Sequence[ReplayRange] = (ReplayRange(begin, position, again=begin.epoch != position.epoch),)
        renamed = self.past.is_renamed(begin, position)
        if renamed or self.past.is_partial(begin, position):
            # A RENAME writes the whole table, and images that lack columns need the values of all earlier changes.
            past = self.past.until(position)
        request = self.scratch.request(past, "repair" if repairing else "look", f"{begin}-{position}")
        rows = self.scratch.build(request, past)
        seen, live = whole_at(spark, target, at, self.past.schema_before(position))
        built, own = self.scratch.rows(request, live), self.scratch.own_request(begin, end)
        quarantined = self.scratch.quarantined(request)
        failing: list[Result] = []
        if self.check is not None:
            scope = Scope.TABLE if renamed else Scope.RANGE
            failing = self.check.assert_passes(
                self.scratch.name, scope, PastState(own, position, seen, built, built), quarantined
            )
        kept = rows_apart(quarantined, seen, live) if quarantined is not None else None
        expected = built if kept is None else built.unionAll(kept)
        if renamed:
            gone = live.selectExpr(*map(quote, seen.primary_key), f"{version_at(position)} AS {VERSION}")
        else:
            # Rows that come back after the range stay: in silver they may have the version of a snapshot or of
            # `validate --fix`, which is older than the delete.
            built_keys = expected.select(*map(quote, seen.primary_key))
            gone = without_keys(deleted_keys(spark, own, seen, live), built_keys, seen)
            # No lower bound: rows of an XA transaction have the position of its XA PREPARE.
            expected = expected.where(older_than(end))
        wrong = damaged_rows(live, expected, gone, seen)
        damage = count_damage(wrong)
        if damage and repairing:
            repairs = _without_quarantined(wrong, kept, seen) if kept is not None else wrong
            repair_rows(spark, target.place, repairs, seen, lambda: repair_tag(spark, target, self.scratch.task.run))
            if quarantined is not None:
                self._quarantine(request, wrong, quarantined)
        self.scratch.discard(request)
        return _Compared(damage, rows, failing)

    def _quarantine(self, request: ApplyRequest, wrong: DataFrame, quarantined: DataFrame) -> None:
        """Quarantine those of the wrong rows that fail an expectation."""
        versions = wrong.where(f"NOT {GONE}").select(F.col(VERSION))
        chosen, schema = quarantined.join(versions, VERSION, "left_semi"), self.past.schema_before(request.end)
        rows = adopted(chosen, request.target, self._target, schema)
        Quarantine.of(self._target).adopt(self.scratch.task.spark, rows)


def whole_at(
    spark: SparkSession, target: Target, at: TableVersion, schema: TableSchema
) -> tuple[TableSchema, DataFrame]:
    """A source table's schema in silver, and its rows there, including those that were quarantined then.

    Args:
        at: from `table_version`.
        schema: the source table's schema.

    Raises:
        LakehouseError: silver cannot be read.
    """
    held = rows_at(spark, target, at.version)
    seen = seen_whole(target, schema, held)
    rows = shard_rows(target, held)
    if at.quarantine is None:
        return seen, rows
    return seen, with_quarantined(spark, target, rows, seen, at.quarantine)


def _without_quarantined(wrong: DataFrame, kept: DataFrame, seen: TableSchema) -> DataFrame:
    """The rows of `damaged_rows`; quarantined ones are marked for deletion from silver."""
    names = [f"_dm_k{number}" for number in range(len(seen.primary_key))]
    keys = (f"{quote(key)} AS {name}" for key, name in zip(seen.primary_key, names, strict=True))
    marked, on = kept.selectExpr(*keys, "true AS _dm_apart"), same_key(seen, quote, names)
    joined = wrong.join(marked, F.expr(on), "left").withColumn(GONE, F.expr(f"{GONE} OR _dm_apart IS NOT NULL"))
    return joined.select(*map(quote, wrong.columns))
