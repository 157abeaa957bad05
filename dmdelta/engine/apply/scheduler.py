"""Schedules the tables of a source: which ones follow its ranges, which ones are paused, and how those catch up.

Only the scheduler changes the phases of `dmdelta.engine.apply.table_state`. Other components request exclusive use of
a table with `pause_tables`, `resume_tables`, `stop_tables` and `maintenance`.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import LandedRange
from dmdelta.checkpoint import Point
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.engine.apply.table_state import Phase, TableError, TableStates
from dmdelta.engine.apply.turns import await_turns, names_of, plan_turns, renames_any
from dmdelta.engine.apply.writer import TableApply
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.errors import QualityError, SchemaError
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.range_profile import TableEvents, table_events, tables_with_events

log = get_logger(__name__)
WAIT_SECONDS = 0.5
TABLES_AT_ONCE = 4
LATE_AT_ONCE = 2
"""Maximum number of late turns: the other tables keep their threads."""
SHORT_SECONDS = 30.0
"""A table that catches up in less time takes its last step while the others wait."""
LATE_SHORT_SECONDS = 5.0
"""The same limit for a slow table: one that never catches up as fast stays behind the others."""


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads that apply a range, and those that wait for late turns."""

    pool: ThreadPoolExecutor
    late: ThreadPoolExecutor


@dataclass(slots=True)
class TableScheduler:
    """The scheduler of one source's tables.

    Attributes:
        has_backlog: whether more of the log has landed than the current range.
        landed: bronze's newest batch when the run started; None if nothing had landed.
    """

    spark: SparkSession
    tables: TableApply
    has_backlog: Callable[[], bool]
    landed: LandedRange | None = None
    _last: LandedRange | None = None
    _overlap_until: Position = ORIGIN
    _loads: bool = False
    _between_ranges: threading.Lock = field(default_factory=threading.Lock)
    _late: dict[Future[None], frozenset[TableName]] = field(default_factory=dict)

    @property
    def context(self) -> SilverContext:
        """The silver tables of the source."""
        return self.tables.context

    @property
    def states(self) -> TableStates:
        return self.tables.requests.states

    @property
    def reached(self) -> Position | None:
        """The end of the last range of this run; None before the first."""
        return self._last.end if self._last else None

    @contextmanager
    def threads(self) -> Iterator[Threads]:
        """The thread pools for `apply_range`."""
        with (
            ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="apply") as pool,
            ThreadPoolExecutor(LATE_AT_ONCE, thread_name_prefix="late") as late,
        ):
            yield Threads(pool, late)

    def apply_range(self, threads: Threads, landed: LandedRange, stop: StopRequest) -> list[TableEvents] | None:
        """Apply a range to all tables in the phase FOLLOWING.

        Returns:
            The events of each table in the range; None if the range renames a table that has to catch up first.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        context, tables = self.context, self.tables
        with self._between_ranges, tables.counters.spending(context.source_id, "apply"):
            events = tables_with_events(self.spark, context, landed.begin, landed.end)
            # Shadow tables have only statements.
            wanted = [
                table for table in events if context.rules.wanted(*table.name)
            ]  # shadow tables have only statements
            behind = self.states.in_phase(Phase.LATE, Phase.MAINTENANCE)
            if renames_any(wanted, behind):
                return None
            tables.points.hand_over(Point(landed.end, str(landed.gtid_set) or None), [table.name for table in wanted])
            self._apply_turns(threads, wanted, landed, stop)
            self._last = landed
            self._overlap_until = max(self._overlap_until, landed.safe_until or ORIGIN)
            self._loads = self._loads or landed.end.chunk is not None
        return wanted

    def check_late(self, *, wait_for_all: bool = False) -> None:
        """Raise the error of a late table that failed.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        for late in [late for late in self._late if wait_for_all or late.done()]:
            late.result()
            del self._late[late]

    def pause_tables(self, names: Collection[TableName]) -> None:
        """Pause tables for a snapshot; waits for the current range. The global checkpoint does not pass them."""
        with self._between_ranges:
            for state in map(self.states.of, names):
                if state.phase is not Phase.SNAPSHOT:
                    state.move(Phase.SNAPSHOT)
        wait([late for late, members in list(self._late.items()) if not members.isdisjoint(names)])

    def resume_tables(self, positions: Mapping[TableName, Position]) -> None:
        """Let paused tables catch up from the position where the log of each continues, then follow the ranges again.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        for state in map(self.states.of, positions):
            reload = state.reload
            state.move(Phase.LATE)
            state.forget()
            if reload is not None:
                reload()
        self._bring_back(positions, overlap=False)

    def resync(self, stop: StopRequest) -> None:
        """Let released shards catch up, until a stop is requested or no more shard can be released in this run."""
        shards, source_id = self.context.shards, self.context.source_id
        while not stop.requested:
            with shards.working():
                held = self.states.in_phase(Phase.WAITING, Phase.STOPPED)
                released = {name: at for name, at in shards.released(source_id).items() if name in held}
                for name, position in released.items():
                    log.info("shard resumed", shard=".".join(name), source=source_id, at=str(position))
                if released:
                    self.resume_tables(released)
            if not released and shards.at_rest():
                return
            if not released:
                stop.wait(WAIT_SECONDS)

    def stop_tables(
        self, names: Collection[TableName], error: TableError, reload: Callable[[], object] | None = None
    ) -> None:
        """Stop tables that silver cannot follow. The checkpoint does not pass them, so the next run tries again.

        Args:
            reload: replaces the silver table before it catches up, when it is resumed.
        """
        for state in map(self.states.of, names):
            state.move(Phase.STOPPED, error=error, reload=reload)
        shown = sorted(".".join(name) for name in names)
        log.warning("tables stopped, the others continue", tables=shown, why=error.message, hint=error.hint)

    @contextmanager
    def maintenance(self, name: TableName, stop: StopRequest) -> Iterator[bool]:
        """Pause a table for the block, then let it catch up. Yields False if it cannot be paused now.

        If the block raises, or a stop is requested, the table stays paused, and the next run resumes it.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        state = self.states.of(name)
        with self._between_ranges:
            # Rows of a snapshot are still being applied: no range may span them and the log after them.
            last = self._last if self._last is not None and self._last.end.chunk is None else None
            paused = state.phase is Phase.FOLLOWING and last is not None
            if paused:
                state.move(Phase.MAINTENANCE)
        yield paused
        if paused and last is not None and state.phase is Phase.MAINTENANCE and not stop.requested:
            state.move(Phase.LATE)
            self._bring_back({name: last.end}, overlap=True)

    def _apply_turns(
        self, threads: Threads, tables: Sequence[TableEvents], landed: LandedRange, stop: StopRequest
    ) -> None:
        """Apply a range to the tables that follow; slow tables become late if the others only wait for them."""
        held = self.states.held
        turns = plan_turns([table for table in tables if table.name not in held], self.context.table)
        running = {threads.pool.submit(self._apply_turn, turn, landed): names_of(turn) for turn in turns}
        slow = await_turns(running, LATE_AT_ONCE - len(self._late), lambda: self._may_leave(landed))
        # All tables finish even when one fails, so that the next run need not repeat their commits.
        failures = [error for turn in running.keys() - slow if (error := turn.exception())]
        if failures:
            raise failures[0]
        for turn in slow:
            self._leave_behind(threads.late.submit(self._follow_late, turn, running[turn], landed, stop), running[turn])

    def _apply_turn(self, groups: Sequence[Sequence[TableEvents]], landed: LandedRange) -> None:
        """Apply a range to groups of tables, one after the other; a group that silver cannot follow stops alone."""
        for group in groups:
            try:
                self._apply_group(group, landed)
            except (SchemaError, QualityError) as error:
                self._stop_unless_reread([table.name for table in group], error)

    def _apply_group(self, group: Sequence[TableEvents], landed: LandedRange) -> None:
        for result in self.tables.apply(group, landed):
            if result.waits is not None:
                self._wait_for_shards((result.schema, result.table), result.waits)

    def _wait_for_shards(self, name: TableName, waits: Waiting) -> None:
        state = self.states.of(name)
        if state.phase is not Phase.SNAPSHOT:  # a late turn may end after a new snapshot has paused the table
            state.move(Phase.WAITING, waits=waits)

    def _stop_unless_reread(self, names: Collection[TableName], error: TableError) -> None:
        """Stop tables after an error, except those that a snapshot is reading again: it replaces their rows."""
        failed = set(names) - self.states.in_phase(Phase.SNAPSHOT)
        if failed:
            self.stop_tables(failed, error)

    def _may_leave(self, landed: LandedRange) -> bool:
        """Whether slow tables may become late: others wait for them, and this run loads no snapshot.

        A late table catches up with one range, which may not span a snapshot and the log after it.
        """
        loads = self._loads or landed.end.chunk is not None
        return self.has_backlog() and not loads and all(state.read_at is None for state in self.states)

    def _leave_behind(self, late: Future[None], names: frozenset[TableName]) -> None:
        """Continue without the tables of a slow turn; they catch up when it ends."""
        for state in map(self.states.of, names):
            if state.phase is Phase.FOLLOWING:
                state.move(Phase.LATE)
        self._late[late] = names
        log.info("tables are slow, the others continue", tables=sorted(".".join(name) for name in names))

    def _follow_late(
        self, turn: Future[None], names: frozenset[TableName], landed: LandedRange, stop: StopRequest
    ) -> None:
        turn.result()
        late = names & self.states.in_phase(Phase.LATE)
        if late and not stop.requested:
            self._bring_back(dict.fromkeys(late, landed.end), overlap=True, short=LATE_SHORT_SECONDS)

    def _bring_back(
        self, positions: Mapping[TableName, Position], *, overlap: bool, short: float = SHORT_SECONDS
    ) -> None:
        """Let late tables catch up from the position where the log of each continues, then follow again.

        Args:
            overlap: take what silver may already contain from the missed ranges; False: from the tables' own commits.
            short: seconds; limits the last step, because the other tables wait for it.
        """
        reached, took = None, short
        while took >= short:
            began = time.monotonic()
            reached = self._catch_up_all(positions, reached, overlap=overlap)
            took = time.monotonic() - began
        with self._between_ranges:
            self._catch_up_all(positions, reached, overlap=overlap)
            for state in map(self.states.of, positions):
                if state.phase is Phase.LATE:
                    state.move(Phase.FOLLOWING)

    def _catch_up_all(
        self, positions: Mapping[TableName, Position], reached: LandedRange | None, *, overlap: bool
    ) -> LandedRange | None:
        """Apply the missing log to late tables, from `positions` on, or from the end of `reached` if that is later.

        Returns:
            The range up to which it was applied.
        """
        # Before the first range of this run, bronze may be ahead of the checkpoint, where that range begins.
        last = self._last or self.landed
        if last is None or last is reached:
            return last
        begins = {name: begin if reached is None else max(begin, reached.end) for name, begin in positions.items()}
        missed = replace(last, safe_until=self._overlap_until if overlap else None)
        if len(begins) == 1:  # in this thread, which has its session already
            self._catch_up(*next(iter(begins.items())), missed)
            return last
        with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="catch-up") as pool:
            list(pool.map(self._catch_up, begins, begins.values(), repeat(missed)))
        return last

    def _catch_up(self, name: TableName, begin: Position, missed: LandedRange) -> None:
        """Apply the log from `begin` to the end of `missed` to a late table."""
        state, context = self.states.of(name), self.context
        if begin >= missed.end or state.phase is not Phase.LATE:
            return
        events = table_events(self.spark, context, name, begin, missed.end)
        if context.table(name).merged:
            state.resync_until = missed.end  # in safe mode, as DM's re-sync of a shard
        self._apply_turn([[events]], replace(missed, begin=begin))
        if state.phase is Phase.LATE:
            state.caught_up = missed.end
