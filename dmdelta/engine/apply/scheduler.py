"""Schedules the tables of a source: each applies its pending ranges in its own turns.

Only the scheduler changes the phases of `dmdelta.engine.apply.table_state`. Other components request exclusive use of
a table with `pause_tables`, `resume_tables`, `stop_tables` and `maintenance`.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.apply.progress import AppliedRange, OpenRanges
from dmdelta.engine.apply.ready import ready_turns
from dmdelta.engine.apply.table_state import LEFT_OUT, Phase, TableError, TableState, TableStates
from dmdelta.engine.apply.turn_apply import Turn, apply_turn
from dmdelta.engine.apply.turns import (
    PendingRange,
    join_pending,
    plan_cost,
    plan_joined,
    plan_missed,
    plan_next_turn,
)
from dmdelta.engine.apply.writer import TableApply, point_of
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.errors import QualityError, SchemaError
from dmdelta.logging import get_logger
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.renames import plan_groups
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.range_profile import tables_with_events

log = get_logger(__name__)
WRITERS = 3
"""Turns at once: while one commits or plans, which one core does, the others read and write rows. On 2 cores, a third
thread saved a tenth of the time for 20 tables; further ones only compete for the same cores."""
RANGE_BYTES = 256 << 20
"""Maximum bytes of log in one turn: large ranges apply more cheaply, small ones stop sooner."""
AHEAD_BYTES = 16 * RANGE_BYTES
"""Bytes of log from the oldest open range on, after which no more ranges are profiled: this bounds the memory."""


@dataclass(slots=True)
class TableScheduler:
    """The scheduler of one source's tables. Any thread may call it.

    Attributes:
        landed: bronze's newest batch when the run started; None if nothing had landed.
        _handed: what was handed over in this run, as one range for each epoch.
    """

    spark: SparkSession
    tables: TableApply
    landed: LandedRange | None = None
    _handed: list[LandedRange] = field(default_factory=list)
    _open: OpenRanges = field(default_factory=OpenRanges)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _running: list[Turn] = field(default_factory=list)
    _reserved: list[TableName] = field(default_factory=list)
    _maintained: set[TableName] = field(default_factory=set)
    _pool: ThreadPoolExecutor | None = None
    _stop: StopRequest | None = None
    _failure: BaseException | None = None

    @property
    def context(self) -> SilverContext:
        """The silver tables of the source."""
        return self.tables.context

    @property
    def states(self) -> TableStates:
        return self.tables.requests.states

    @property
    def reached(self) -> Position | None:
        """The end of the last range that was handed over in this run; None before the first."""
        return self._handed[-1].end if self._handed else None

    @property
    def is_idle(self) -> bool:
        """Whether no turn is running or waiting."""
        with self._changed:
            return not self._running and not any(state.pending for state in self.states)

    @property
    def in_flight(self) -> list[TableName]:
        """The tables whose turns are running."""
        with self._changed:
            return [name for turn in self._running for name in turn.parts]

    @property
    def has_room(self) -> bool:
        """Whether another range can be handed over without holding too much of the log in memory."""
        with self._changed:
            return self._open.size < AHEAD_BYTES

    @contextmanager
    def writing(self, stop: StopRequest) -> Iterator[None]:
        """Run turns during the block, until a stop is requested and no longer drains.

        Running turns finish at the end of the block.
        """
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="apply") as pool:
            with self._changed:
                self._pool, self._stop = pool, stop
            self._start_turns()
            try:
                yield
            finally:
                with self._changed:
                    self._pool = None

    def hand_over(self, landed: LandedRange) -> None:
        """Add a range, after those before it, to the pending ranges of the tables with events in it. Does not wait.

        Raises:
            LakehouseError: bronze cannot be read.
            DmdeltaError: the checkpoint cannot be written.
        """
        context = self.context
        events = tables_with_events(self.spark, context, landed.begin, landed.end)
        # Shadow tables have only statements.
        wanted = [table for table in events if context.rules.wanted(*table.name)]
        self.tables.points.hand_over(point_of(landed), [table.name for table in wanted])
        groups = [frozenset(table.name for table in group) for group in plan_groups(wanted)]
        group_of = {name: group for group in groups if len(group) > 1 for name in group}
        with self._changed:
            following = list[TableName]()
            for table in wanted:
                state = self.states.of(table.name)
                if state.phase not in LEFT_OUT:
                    group = group_of.get(table.name, frozenset())
                    state.pending.append(PendingRange(landed, table, time.monotonic(), group))
                if state.phase is Phase.FOLLOWING:
                    following.append(table.name)
            self._open.add(landed, following, tables=len(wanted), ddl=any(table.ddl for table in wanted))
            if self._handed and self._handed[-1].end.epoch == landed.end.epoch:
                self._handed[-1] = self._handed[-1].join(landed)
            else:
                self._handed.append(landed)
        self._start_turns()

    def take_applied(self) -> list[AppliedRange]:
        """The ranges that all tables have applied since the last call, in log order. Held tables are not awaited."""
        with self._changed:
            return self._open.take()

    def check(self) -> None:
        """Raise the error of a turn that failed; no turn starts after it.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        if self._failure is not None:
            raise self._failure

    def pause_tables(self, names: Collection[TableName]) -> None:
        """Pause tables for a snapshot; waits for turns and maintenance. The global checkpoint does not pass them."""
        with self._changed:
            for state in map(self.states.of, names):
                if state.phase is not Phase.SNAPSHOT:
                    state.move(Phase.SNAPSHOT)
                self._leave_out(state)
            self._start_turns()  # of tables that waited for one of these at a rename
            self._await_turns(names)
            # Only one may write at a time: Spark and delta-rs could overwrite each other's commits.
            self._changed.wait_for(lambda: self._maintained.isdisjoint(names))

    def resume_tables(self, positions: Mapping[TableName, Position]) -> None:
        """Let held tables follow the ranges again, each from the position where its log continues. Does not wait."""
        with self._changed:
            for name, position in positions.items():
                state = self.states.of(name)
                state.move(Phase.FOLLOWING, reload=state.reload)
                state.forget()
                self._add_missed(state, position)
        self._start_turns()

    def resume_released(self) -> None:
        """Resume shards whose statements need not wait any longer."""
        shards, source_id = self.context.shards, self.context.source_id
        with self._changed:  # otherwise a snapshot could pause one of them before it is moved
            held = self.states.in_phase(Phase.WAITING, Phase.STOPPED)
            released = {name: at for name, at in shards.released(source_id).items() if name in held}
            self.resume_tables(released)
        for name, position in released.items():
            log.info("shard resumed", shard=".".join(name), source=source_id, at=str(position))

    def stop_tables(
        self, names: Collection[TableName], error: TableError, reload: Callable[[], object] | None = None
    ) -> None:
        """Stop tables that silver cannot follow. The checkpoint does not pass them, so the next run tries again.

        Args:
            reload: replaces the silver table in its first turn, when it is resumed.
        """
        with self._changed:
            for state in map(self.states.of, names):
                state.move(Phase.STOPPED, error=error, reload=reload)
                self._leave_out(state)
        shown = sorted(".".join(name) for name in names)
        log.warning("tables stopped, the others continue", tables=shown, why=error.message, hint=error.hint)

    @contextmanager
    def maintenance(self, name: TableName, stop: StopRequest) -> Iterator[bool]:
        """Pause a table for the block; its ranges accumulate. Yields False if it cannot be paused now.

        If the block raises, or a stop is requested, the table stays paused, and the next run resumes it.
        """
        state = self.states.of(name)
        with self._changed:
            self._reserved.append(name)
            self._await_turns([name])
            self._reserved.remove(name)
            paused = state.phase is Phase.FOLLOWING
            if paused:
                state.move(Phase.MAINTENANCE)
                self._open.leave_out(name)
                self._maintained.add(name)
        try:
            yield paused
        finally:
            with self._changed:
                self._maintained.discard(name)
                self._changed.notify_all()
        with self._changed:
            if paused and state.phase is Phase.MAINTENANCE and (stop.drains or not stop.requested):
                state.move(Phase.FOLLOWING)
                state.behind_until = state.pending[-1].landed.end if state.pending else state.behind_until
        self._start_turns()

    def wait(self, seconds: float) -> None:
        """Wait until a turn ends or starts, or for at most `seconds`."""
        with self._changed:
            self._changed.wait(seconds)

    def _await_turns(self, names: Collection[TableName]) -> None:
        self._changed.wait_for(lambda: all(turn.parts.keys().isdisjoint(names) for turn in self._running))

    def _leave_out(self, state: TableState) -> None:
        """Drop the pending ranges of a table that is held: it resumes with a range from where its log continues."""
        state.pending.clear()
        self._open.leave_out(state.name)

    def _add_missed(self, state: TableState, begin: Position) -> None:
        """Give a resumed table what it misses: from `begin` to the end of the last range that was handed over."""
        handed = self._handed
        if not handed:  # all ranges are still to come; the turn only reads the table's position, and reloads it
            handed = [self.landed or LandedRange(0, begin, begin, parse_gtid_set("", self.context.flavor))]
            handed = [replace(handed[0], end=begin)]
        missed = plan_missed(handed, begin)
        if self.context.table(state.name).merged:
            state.resync_until = missed[-1].end  # in safe mode, as DM's re-sync of a shard
        state.pending.clear()
        state.pending.extend(PendingRange(each, None, time.monotonic()) for each in missed)
        state.behind_until = missed[-1].end

    def _start_turns(self) -> None:
        """Start the next turns, as many as there are free writers."""
        with self._changed:
            self._changed.notify_all()
            while self._pool is not None and len(self._running) < WRITERS and self._may_start():
                busy = {name for turn in self._running for name in turn.parts}.union(self._reserved)
                chosen = plan_next_turn(ready_turns(self.states, busy, self._merged), self._merged_in_use())
                if chosen is None:
                    return
                turn = Turn({name: self._take_pending(self.states.of(name)) for name in chosen.names})
                self._running.append(turn)
                self._pool.submit(self._run, turn)

    def _may_start(self) -> bool:
        stop = self._stop
        return self._failure is None and stop is not None and (stop.drains or not stop.requested)

    def _merged_in_use(self) -> frozenset[TableName]:
        running = [name for turn in self._running for name in turn.parts]
        return self._merged([*running, *self.states.in_phase(Phase.MAINTENANCE)])

    def _merged(self, names: Iterable[TableName]) -> frozenset[TableName]:
        targets = map(self.context.table, names)
        return frozenset(target.route.name for target in targets if target.merged)

    def _take_pending(self, state: TableState) -> PendingRange:
        count = plan_joined(state.pending, RANGE_BYTES)
        return join_pending([state.pending.popleft() for _ in range(count)])

    def _run(self, turn: Turn) -> None:
        """Run a turn in a writer's thread, then start the next ones."""
        began, finished = time.monotonic(), set[TableName]()
        try:
            finished = self._apply_turn(turn, began)
        except BaseException as error:  # noqa: BLE001 - `check` raises it
            with self._changed:
                self._failure = self._failure or error
        with self._changed:
            self._running.remove(turn)
            for name in finished:
                self._end_turn(self.states.of(name), turn.landed.end, time.monotonic() - began)
            self._start_turns()

    def _end_turn(self, state: TableState, end: Position, took: float) -> None:
        state.seconds = plan_cost(state.seconds, took)
        self._open.applied(state.name, end)
        if state.behind_until is not None and end >= state.behind_until:
            state.behind_until = None

    def _apply_turn(self, turn: Turn, began: float) -> set[TableName]:
        """Apply the ranges of a turn; tables that silver cannot follow stop alone. Returns the tables that have it."""
        try:
            if not all(self._reload(self.states.of(name)) for name in turn.parts):
                return set()
            waiting = set[TableName]()
            for result in apply_turn(self.tables, turn, began):
                if result.waits is not None:
                    name = (result.schema, result.table)
                    waiting.add(name)
                    self._wait_for_shards(self.states.of(name), result.waits)
            return turn.parts.keys() - waiting
        except (SchemaError, QualityError) as error:
            with self._changed:
                # Except those that a snapshot is reading again: it replaces their rows.
                failed = turn.parts.keys() - self.states.in_phase(Phase.SNAPSHOT)
                if failed:
                    self.stop_tables(failed, error)
            return set()

    def _reload(self, state: TableState) -> bool:
        """Replace the rows of a table that resumes after a snapshot could not be applied; False if it stops again."""
        reload, state.reload = state.reload, None
        if reload is not None:
            reload()
        return state.phase is not Phase.STOPPED

    def _wait_for_shards(self, state: TableState, waits: Waiting) -> None:
        with self._changed:
            if state.phase is not Phase.SNAPSHOT:  # which replaces its rows
                state.move(Phase.WAITING, waits=waits)
                self._leave_out(state)
