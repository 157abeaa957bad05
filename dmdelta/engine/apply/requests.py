"""What is to be applied of a range to each table: planned from its own history first, then from its last range."""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import LandedRange
from dmdelta.checkpoint import Point, Points, RestartPlan, SafeModePolicy, SourceEvidence, TableEvidence, TablePoint
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.checkpoint.restart_plan import plan_restart
from dmdelta.engine.apply.table_state import TableState, TableStates
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import ApplyRequest, ApplyResult
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.range_profile import TableEvents
from dmdelta.silver.table.state import silver_state

log = get_logger(__name__)


@dataclass(slots=True)
class RangeRequests:
    """The requests of one source's tables.

    Attributes:
        evidence: what was known of the source when the run began: a table's first range is planned from it.
    """

    side: SilverContext
    points: Points
    evidence: SourceEvidence
    policy: SafeModePolicy
    states: TableStates = field(default_factory=TableStates)
    _began: float = field(default_factory=time.monotonic)

    def request(self, spark: SparkSession, table: TableEvents, landed: LandedRange) -> ApplyRequest:
        """What is to be applied of a range to a table; it begins at the end or behind if silver has all of it."""
        state = self.states.of(table.name)
        plan = state.plan or self._plan(spark, state)
        begin, side = _begin(state, plan, landed), self.side
        state.is_safe = self._is_safe(state, plan, begin, landed)
        newest, state.newest = state.newest, None
        return ApplyRequest(
            context=side,
            schema=table.schema,
            table=table.table,
            begin=begin,
            end=landed.end,
            batch=landed.batch,
            mode=Mode.SAFE if state.is_safe else Mode.NORMAL,
            known=state.structure,
            events=table if begin == landed.begin else None,
            applied=state.version,
            newest=newest,
            safe_until=state.safe_until,
        )

    def applied(self, result: ApplyResult) -> None:
        """Take over what is known of a table after a range."""
        state = self.states.of((result.schema, result.table))
        state.commits += len(result.steps)
        if result.waits is not None:
            state.forget()
        elif result.structure is not None and result.commit is not None:
            state.structure, state.version = result.structure, result.commit.tag.version
        else:
            state.structure = None

    def is_read_at(self, request: ApplyRequest, landed: LandedRange) -> bool:
        """All that the range holds of a table is in the snapshot that read it exactly at one position."""
        return request.begin >= landed.end and request.begin == _read_at(self.states.of(request.name), landed)

    def _is_safe(self, state: TableState, plan: RestartPlan, begin: Position, landed: LandedRange) -> bool:
        """The safe-mode decision: whether something from `begin` on may be in silver already."""
        target = self.side.table(state.name)
        if target.merged and self.side.shards.is_coordinating(target.route.name):
            return True
        until = (
            landed.safe_until if _read_at(state, landed) is None else None,
            state.safe_until,
            state.resync_until,
        )
        elapsed = timedelta(seconds=time.monotonic() - self._began)
        return begin < max(position or ORIGIN for position in until) or plan.is_safe(begin, elapsed)

    def _plan(self, spark: SparkSession, state: TableState) -> RestartPlan:
        """The plan of a table's first range; each later range follows the one before."""
        found = silver_state(spark, self.side.table(state.name))
        evidence = TableEvidence(*state.name, found.position, found.delta_version)
        plan = state.plan = plan_restart(evidence, self.evidence, self.policy)
        if found.commit is not None:
            state.version, state.newest = found.commit.tag.version, found.commit
            state.safe_until = found.commit.tag.safe_until or state.safe_until
        if found.position is not None:
            self.points.applied(TablePoint(*state.name, Point(found.position), found.delta_version))
        log.info("table resumed", table=".".join(state.name), start=str(plan.start), why=plan.reason)
        return plan


def _begin(state: TableState, plan: RestartPlan, landed: LandedRange) -> Position:
    read_at = _read_at(state, landed) or landed.begin
    return max(landed.begin, plan.start, read_at, state.caught_up or landed.begin)


def _read_at(state: TableState, landed: LandedRange) -> Position | None:
    """Where the log of a table continues that was read exactly there, if the range is of that log."""
    position = state.read_at
    return position if position is not None and landed.end.epoch >= position.epoch else None
