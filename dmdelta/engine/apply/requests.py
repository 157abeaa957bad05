"""Plans each table's request for a range: the first from the table's history, a later one from its last request."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from pyspark.sql import SparkSession

from dmdelta.bronze.progress import LandedRange
from dmdelta.checkpoint import Point, Points, RestartPlan, SafeModePolicy, SourceEvidence, TableEvidence, TablePoint
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.checkpoint.restart_plan import plan_restart
from dmdelta.engine.apply.table_state import TableState, TableStates
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.request import STEP_BITS, ApplyRequest, ApplyResult
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.silver.schema.range_profile import StructuresBefore, TableEvents
from dmdelta.silver.table.state import silver_state

log = get_logger(__name__)


@dataclass(slots=True)
class RangeRequests:
    """The requests of one source's tables.

    Attributes:
        evidence: the state of the source when the run started; the first range of each table is planned from it.
        earlier: the structures before the first range of the run; None: they are looked up for each table.
        rest: the end of an overlap as a position in the log of an epoch; None: it was passed before (`LaterLogs`).
    """

    context: SilverContext
    points: Points
    evidence: SourceEvidence
    policy: SafeModePolicy
    earlier: EarlierStructures | None = None
    rest: Callable[[Position, int], Position | None] = lambda *_: None
    states: TableStates = field(default_factory=TableStates)
    _began: float = field(default_factory=time.monotonic)

    def begin(self, spark: SparkSession, name: TableName, landed: LandedRange) -> Position:
        """Where the rest of a range begins that silver does not have: the range's end or later if it has all of it."""
        state = self.states.of(name)
        return _begin(state, state.plan or self._plan(spark, state), landed)

    def request(self, spark: SparkSession, table: TableEvents, landed: LandedRange) -> ApplyRequest:
        """Plan what to apply of a range to a table; the request begins at or after its end if silver has all of it."""
        state = self.states.of(table.name)
        plan = state.plan or self._plan(spark, state)
        begin, context = _begin(state, plan, landed), self.context
        batch, whole = plan_version(state.version, landed.batch)
        state.safe_until = self._safe_beyond(state.safe_until, begin)
        # The interrupted turn may have applied these rows, together with later ones.
        state.is_safe = not whole or self._is_safe(state, plan, begin, landed)
        newest, state.newest = state.newest, None
        return ApplyRequest(
            context=context,
            schema=table.schema,
            table=table.table,
            begin=begin,
            end=landed.end,
            batch=batch,
            mode=Mode.SAFE if state.is_safe else Mode.NORMAL,
            known=state.structure,
            events=table if begin == landed.begin else None,
            applied=state.version,
            after=state.delta_version,
            newest=newest,
            safe_until=state.safe_until,
            overlap_until=_overlap_until(state, landed),
            earlier=self._earlier(state, table, begin),
            whole=whole,
        )

    def _earlier(self, state: TableState, table: TableEvents, begin: Position) -> StructuresBefore | None:
        """The structures of a table before `begin`, as long as this run has not applied a range to it."""
        if state.is_new and self.earlier is not None:
            state.earlier = self.earlier.before(state.name)
        state.is_new = False
        if state.structure is not None or state.earlier is None:
            state.earlier = None
            return None
        state.earlier = (*state.earlier, *(event for event in table.structure if event not in state.earlier))
        return StructuresBefore(begin, tuple(event for event in state.earlier if event.position < begin))

    def applied(self, result: ApplyResult) -> None:
        """Update a table's state after a range."""
        state = self.states.of((result.schema, result.table))
        state.commits += len(result.steps)
        if result.waits is not None:
            state.forget()
        elif result.structure is not None and result.commit is not None:
            state.structure, state.version = result.structure, result.commit.tag.version
            state.delta_version = result.delta_version
        else:
            state.structure = None

    def is_read_at(self, request: ApplyRequest, landed: LandedRange) -> bool:
        """Whether an exact snapshot of the table already contains everything that the range has of it."""
        return request.begin >= landed.end and request.begin == _read_at(self.states.of(request.name), landed)

    def _is_safe(self, state: TableState, plan: RestartPlan, begin: Position, landed: LandedRange) -> bool:
        """Whether to apply in safe mode: silver may already contain changes from `begin` on."""
        target = self.context.table(state.name)
        if target.merged and self.context.shards.is_coordinating(target.route.name):
            return True
        until = max(_overlap_until(state, landed) or ORIGIN, state.resync_until or ORIGIN)
        elapsed = timedelta(seconds=time.monotonic() - self._began)
        return begin < until or plan.is_safe(begin, elapsed)

    def _safe_beyond(self, until: Position | None, begin: Position) -> Position | None:
        """The end of a table's own overlap, as a position in the log that `begin` is in; None behind it."""
        if until is not None and until.epoch < begin.epoch:
            until = self.rest(until, begin.epoch)
        return until if until is not None and begin < until else None

    def _plan(self, spark: SparkSession, state: TableState) -> RestartPlan:
        """Plan a table's first range; each later range continues from the one before."""
        silver = silver_state(spark, self.context.table(state.name))
        evidence = TableEvidence(*state.name, silver.position, silver.delta_version)
        plan = state.plan = plan_restart(evidence, self.evidence, self.policy)
        if silver.commit is not None:
            state.version, state.newest = silver.commit.tag.version, silver.commit
            state.delta_version = silver.commit.version
            state.safe_until = silver.commit.tag.safe_until or state.safe_until
        if silver.position is not None:
            self.points.applied(TablePoint(*state.name, Point(silver.position), silver.delta_version))
        log.info("table resumed", table=".".join(state.name), start=str(plan.start), why=plan.reason)
        return plan


def plan_version(applied: int | None, batch: int) -> tuple[int, bool]:
    """The batch that numbers the commits of a request, and whether the request completes it.

    A crash may interrupt a turn that joined more batches than the next start joins. The table's newest commit then has
    a higher version than this request would use, and Delta would skip the request's commits. So the request continues
    as a part of the interrupted turn's batch, which a later request completes.

    Args:
        applied: the transaction version of the table's newest own commit; None: unknown.
        batch: the landing batch that ends where the request ends.
    """
    unfinished = (applied + 1) >> STEP_BITS if applied is not None else batch
    return (unfinished, False) if unfinished > batch else (batch, True)


def _begin(state: TableState, plan: RestartPlan, landed: LandedRange) -> Position:
    read_at = _read_at(state, landed) or landed.begin
    return max(landed.begin, plan.start, read_at)


def _overlap_until(state: TableState, landed: LandedRange) -> Position | None:
    """Events before this position may be in silver already, from a snapshot or from an earlier epoch; None: none."""
    read_at = _read_at(state, landed)
    # A later epoch repeats log from behind an exact snapshot, too.
    is_exact = read_at is not None and read_at.epoch == landed.begin.epoch
    of_source = None if is_exact else landed.safe_until
    return max(filter(None, (of_source, state.safe_until)), default=None)


def _read_at(state: TableState, landed: LandedRange) -> Position | None:
    """Where a table's log continues after an exact snapshot, if the range belongs to that log.

    A range that begins before has rows of the snapshot itself.
    """
    position = state.read_at
    return position if position is not None and landed.begin.epoch >= position.epoch else None
