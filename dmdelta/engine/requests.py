"""What to apply of a range to each table, based on the table's position: planned at its first range, then tracked."""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed
from dmdelta.checkpoint import Point, Points, RestartPlan, SafeModePolicy, SourceEvidence, TableEvidence, TablePoint
from dmdelta.checkpoint.decision import plan_restart
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.logging import get_logger
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import SourceRules
from dmdelta.sharding import Coordination
from dmdelta.silver.checks import RowChecks, no_checks
from dmdelta.silver.plan import Mode
from dmdelta.silver.request import ApplyRequest, ApplyResult
from dmdelta.silver.state import silver_state
from dmdelta.silver.survey import TableEvents
from dmdelta.silver.target import Target

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SilverSide:
    """A source and where its changes go.

    Attributes:
        shards: coordinates the shards of merged tables, across all sources.
        checks: expectations on the rows of its tables.
    """

    lakehouse: Lakehouse
    task: str
    source_id: str
    run: str
    flavor: Flavor
    rules: SourceRules
    shards: Coordination = field(default_factory=Coordination)
    checks: RowChecks = no_checks

    def table(self, name: TableName) -> Target:
        """The target of a source table.

        Raises:
            ConfigError: two routes match it.
        """
        return Target(self.lakehouse, self.task, self.source_id, name, self.rules.route(*name))


@dataclass(slots=True)
class Requests:
    """
    Attributes:
        evidence: what was known about the source when the run began: a table's first range is planned from it.
        read_at: where the log resumes for tables that a snapshot read at one exact position.
    """

    side: SilverSide
    points: Points
    evidence: SourceEvidence
    policy: SafeModePolicy
    read_at: dict[TableName, Position] = field(default_factory=dict)
    _caught_up: dict[TableName, Position] = field(default_factory=dict)
    _again_until: dict[TableName, Position] = field(default_factory=dict)
    _plans: dict[TableName, RestartPlan] = field(default_factory=dict)
    _structures: dict[TableName, TableSchema] = field(default_factory=dict)
    _versions: dict[TableName, int] = field(default_factory=dict)
    _newest: dict[TableName, OwnCommit] = field(default_factory=dict)
    _safe_until: dict[TableName, Position] = field(default_factory=dict)
    _safe: set[TableName] = field(default_factory=set)
    _began: float = field(default_factory=time.monotonic)

    def request(self, spark: SparkSession, table: TableEvents, landed: Landed) -> ApplyRequest:
        """What to apply of a range to a table; begins at the end or later if all of it is already applied."""
        name, begin, side = table.name, self._begin(spark, table, landed), self.side
        safe = self._is_safe(name, begin, landed)
        (self._safe.add if safe else self._safe.discard)(name)
        return ApplyRequest(
            lakehouse=side.lakehouse,
            task=side.task,
            source_id=side.source_id,
            run=side.run,
            schema=table.schema,
            table=table.table,
            begin=begin,
            end=landed.end,
            batch=landed.batch,
            mode=Mode.SAFE if safe else Mode.NORMAL,
            known=self._structures.get(name),
            events=table if begin == landed.begin else None,
            applied=self._versions.get(name),
            newest=self._newest.pop(name, None),
            safe_until=self._safe_until.get(name),
            flavor=side.flavor,
            rules=side.rules,
            shards=side.shards,
            checks=side.checks,
        )

    @property
    def safe_tables(self) -> int:
        """The number of tables whose last range was applied in safe mode."""
        return len(self._safe)

    def applied(self, result: ApplyResult) -> None:
        """Store the resulting state of a table."""
        name = (result.schema, result.table)
        if result.waits is not None:
            self.forget(name)
        elif result.structure is not None and result.commit is not None:
            self._structures[name] = result.structure
            self._versions[name] = result.commit.tag.version
        else:
            self._structures.pop(name, None)

    def forget(self, name: TableName) -> None:
        """Forget the cached state of a table, so that it is read again."""
        for known in (self._plans, self._structures, self._versions, self._newest):
            known.pop(name, None)

    def catch_up(self, name: TableName, until: Position) -> None:
        """Apply what a table missed while paused in safe mode, like DM's re-sync of a shard."""
        self._again_until[name] = until

    def caught_up(self, name: TableName, position: Position) -> None:
        """A paused table has caught up with the others."""
        self._caught_up[name] = position

    def is_read_at(self, request: ApplyRequest, landed: Landed) -> bool:
        """The snapshot at an exact position already contains the range."""
        return request.begin >= landed.end and request.begin == self._read_at(request.name, landed)

    def _begin(self, spark: SparkSession, table: TableEvents, landed: Landed) -> Position:
        plan, name = self._plan(spark, table), table.name
        read_at = self._read_at(name, landed) or landed.begin
        return max(landed.begin, plan.start, read_at, self._caught_up.get(name, landed.begin))

    def _is_safe(self, name: TableName, begin: Position, landed: Landed) -> bool:
        target = self.side.table(name)
        if target.merged and self.side.shards.is_coordinating(target.route.name):
            return True
        until = (
            landed.safe_until if self._read_at(name, landed) is None else None,
            self._safe_until.get(name),
            self._again_until.get(name),
        )
        elapsed = timedelta(seconds=time.monotonic() - self._began)
        return begin < max(position or ORIGIN for position in until) or self._plans[name].is_safe(begin, elapsed)

    def _read_at(self, name: TableName, landed: Landed) -> Position | None:
        """Where the log resumes for a table read at an exact position, if the range belongs to that log."""
        position = self.read_at.get(name)
        return position if position is not None and landed.end.epoch >= position.epoch else None

    def _plan(self, spark: SparkSession, table: TableEvents) -> RestartPlan:
        """The restart plan of a table, made at its first range in this run; later ranges follow from it."""
        name = table.name
        plan = self._plans.get(name)
        if plan is None:
            state = silver_state(spark, self.side.table(name))
            plan = plan_restart(
                TableEvidence(table.schema, table.table, state.position, state.delta_version),
                self.evidence,
                self.policy,
            )
            self._plans[name] = plan
            if state.commit is not None:
                self._versions[name] = state.commit.tag.version
                self._newest[name] = state.commit
                if state.commit.tag.safe_until is not None:
                    self._safe_until[name] = state.commit.tag.safe_until
            if state.position is not None:
                self.points.applied(TablePoint(*name, Point(state.position), state.delta_version))
            log.info("table resumed", table=f"{table.schema}.{table.table}", start=str(plan.start), why=plan.reason)
        return plan
