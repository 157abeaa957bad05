"""The applying loop of one source: landed ranges are applied to the silver tables, several tables at a time."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed
from dmdelta.checkpoint import FlushReason, Point
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.engine.landed_log import LandedLog
from dmdelta.engine.requests import SilverSide
from dmdelta.engine.stop import StopRequest
from dmdelta.engine.table_apply import TableApply
from dmdelta.engine.turns import await_turns, names_of, plan_turns
from dmdelta.errors import QualityError, SchemaError
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sharding import Waiting
from dmdelta.silver.renaming import plan_groups
from dmdelta.silver.survey import TableEvents, table_events, tables_with_events

log = get_logger(__name__)
WAIT_SECONDS = 0.5
IDLE_SECONDS = 30.0
"""After this time without a new range, the source's tables are assumed to match its catalog."""
RANGE_BYTES = 256 << 20
"""Size of one range in bytes of the log: large ranges are cheaper to apply, small ones make stopping faster."""
TABLES_AT_ONCE = 4
LATE_AT_ONCE = 2
"""How many turns may run late at a time: the other tables still have threads."""
SHORT_SECONDS = 30.0
"""A table that caught up in less time takes its last step while the others wait."""
LATE_SHORT_SECONDS = 5.0
"""The same for a late table: until it is that fast, it continues separately, behind the others."""


@dataclass(frozen=True, slots=True)
class _Threads:
    """The threads that apply a range, and those for late tables."""

    pool: ThreadPoolExecutor
    late: ThreadPoolExecutor


@dataclass(slots=True)
class ApplyingLoop:
    """The applying loop and its collaborators.

    Attributes:
        tables: applies a range to some of the source's tables.
        request_flush: makes the flusher write the checkpoint soon.
        landed: bronze's newest batch when the run began; None: nothing had landed.
        stopped: tables that silver cannot follow, or whose rows stop them: they are paused, the others continue.
        waiting: shards that wait for others of their merged table: they are paused, too.
        reloads: retries, before the catch-up, the overwrite of tables that stopped during a snapshot.
        applied_log: receives the applied ranges; None if nothing reads them.
    """

    spark: SparkSession
    tables: TableApply
    landed_log: LandedLog
    request_flush: Callable[[FlushReason], None]
    landed: Landed | None = None
    stopped: dict[TableName, SchemaError | QualityError] = field(default_factory=dict)
    waiting: dict[TableName, Waiting] = field(default_factory=dict)
    reloads: dict[TableName, Callable[[], object]] = field(default_factory=dict)
    applied_log: LandedLog | None = None
    _aside: set[TableName] = field(default_factory=set)
    _held: set[TableName] = field(default_factory=set)
    _last: Landed | None = None
    _again_until: Position = ORIGIN
    _loads: bool = False
    _between_ranges: threading.Lock = field(default_factory=threading.Lock)
    _late: dict[Future[None], frozenset[TableName]] = field(default_factory=dict)

    def run(self, stop: StopRequest) -> None:
        """Apply until the stop is requested, or until landing has ended and nothing is left. Ends at a range's end."""
        busy = time.monotonic()
        with (
            ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="apply") as pool,
            ThreadPoolExecutor(LATE_AT_ONCE, thread_name_prefix="late") as late,
        ):
            while not stop.requested:
                self._check_late(late=False)
                landed = self.landed_log.take(RANGE_BYTES, WAIT_SECONDS)
                if landed is not None:
                    while not self._apply_range(_Threads(pool, late), landed, stop) and not stop.wait(WAIT_SECONDS):
                        self._check_late(late=False)
                    busy = time.monotonic()
                    continue
                finished = self.landed_log.finished
                if finished or time.monotonic() > busy + IDLE_SECONDS:
                    self.side.shards.heard_all(self.side.source_id)
                if finished:
                    self._check_late(late=True)
                    return

    @property
    def side(self) -> SilverSide:
        """The silver side of the source."""
        return self.tables.side

    @property
    def held(self) -> frozenset[TableName]:
        """The paused tables."""
        return frozenset(self._held | self._aside)

    @property
    def reached(self) -> Position | None:
        """The end of the last range of this run; None before the first."""
        return self._last.end if self._last else None

    def hold(self, tables: Collection[TableName]) -> None:
        """Pause tables from now on, after the current range. The global point waits for them."""
        with self._between_ranges:
            self._held.update(tables)
        wait([late for late, names in list(self._late.items()) if not names.isdisjoint(tables)])

    def resync(self, stop: StopRequest) -> None:
        """Let shards that no longer wait catch up, until the stop is requested or no more can resume in this run."""
        shards, source_id = self.side.shards, self.side.source_id
        while not stop.requested:
            with shards.working():
                released = shards.released(source_id)
                for name, position in released.items():
                    log.info("shard resumed", shard=".".join(name), source=source_id, at=str(position))
                if released:
                    self.release(released)
            if not released and shards.at_rest():
                return
            if not released:
                stop.wait(WAIT_SECONDS)

    def release(self, goes_on: Mapping[TableName, Position]) -> None:
        """Let paused tables catch up with the others, from where their log resumes, and then continue with them.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        for name in goes_on:
            self.stopped.pop(name, None)
            self.waiting.pop(name, None)
            self.tables.requests.forget(name)
            if (reload := self.reloads.pop(name, None)) is not None:
                reload()
        self._resume_tables(goes_on, self._held)

    @contextmanager
    def aside(self, name: TableName, stop: StopRequest) -> Iterator[bool]:
        """Pause a table for the block, after which it catches up with the others; False: it is already paused.

        If the block raises, or the stop is requested, the table stays at its position and the next run resumes there.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        with self._between_ranges:
            last = self._last
            if name in self.held or (last is not None and last.end.chunk is not None):
                last = None  # a snapshot's rows are still to come: no range spans them and the log after them
            if last is not None:
                self._aside.add(name)
        yield last is not None
        if name in self._held:  # a new snapshot of it has started meanwhile
            self._aside.discard(name)
        elif last is not None and not stop.requested:
            self._resume_tables({name: last.end}, self._aside)

    def _resume_tables(
        self, goes_on: Mapping[TableName, Position], paused: set[TableName], short: float = SHORT_SECONDS
    ) -> None:
        """Let paused tables catch up, from where their log resumes, and resume them."""
        reached, took = None, short
        while took >= short:
            began = time.monotonic()
            reached = self._catch_up_all(goes_on, reached)
            took = time.monotonic() - began
        # The others continue meanwhile, so the last step is only taken while they wait: it is a short one.
        with self._between_ranges:
            self._catch_up_all(goes_on, reached)
            kept = self.stopped.keys() | self.waiting.keys() if paused is self._held else frozenset()
            paused.difference_update(goes_on.keys() - kept)

    def _catch_up_all(self, goes_on: Mapping[TableName, Position], reached: Landed | None) -> Landed | None:
        """Apply what paused tables lack, from where their logs resume, or from `reached` if they got that far.

        Returns:
            The range up to which they are applied.
        """
        # Before the first range of this run, bronze may extend beyond that range: the checkpoint is ahead of it.
        last = self._last or self.landed
        if last is not None and last is not reached:
            begins = {name: begin if reached is None else max(begin, reached.end) for name, begin in goes_on.items()}
            if len(begins) == 1:  # in this thread, which already has a session
                self._catch_up(*next(iter(begins.items())), last)
                return last
            with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="catch-up") as pool:
                list(pool.map(self._catch_up, begins, begins.values(), repeat(last)))
        return last

    def _catch_up(self, name: TableName, begin: Position, last: Landed) -> None:
        if begin >= last.end or name in self.stopped or name in self.waiting:
            return
        side = self.side
        events = table_events(self.spark, side.lakehouse, side.source_id, name, begin, last.end)
        if side.table(name).merged:
            self.tables.requests.catch_up(name, last.end)
        # For a table that was reloaded, or waited, its own commits determine what may already be applied.
        again_until = self._again_until if name in self._aside else None
        try:
            self._apply_group([events], replace(last, begin=begin, safe_until=again_until))
        except (SchemaError, QualityError) as error:
            self.stop_tables([name], error)
        else:
            if name not in self.waiting:
                self.tables.requests.caught_up(name, last.end)

    def _apply_range(self, threads: "_Threads", landed: Landed, stop: StopRequest) -> bool:
        """Apply a range to all tables that are not paused; False if a paused one must catch up first."""
        side, tables = self.side, self.tables
        with self._between_ranges, tables.tally.spending(side.source_id, "apply"):
            events = tables_with_events(self.spark, side.lakehouse, side.source_id, landed.begin, landed.end)
            selected = [
                table for table in events if side.rules.wanted(*table.name)
            ]  # a shadow table only has statements
            if any(len(group) > 1 and self._aside & names_of([group]) for group in plan_groups(selected)):
                return False  # a paused table exchanges its name with another one
            tables.points.hand_over(Point(landed.end, str(landed.gtid_set) or None), [table.name for table in selected])
            groups = plan_groups([table for table in selected if table.name not in self.held])
            running = {
                threads.pool.submit(self._apply_groups, turn, landed): names_of(turn)
                for turn in plan_turns(groups, side.table)
            }
            slow = await_turns(running, LATE_AT_ONCE - len(self._late), lambda: self._may_run_late(landed))
            # The other tables finish even if one fails: their commits need not be repeated.
            failures = [error for turn in running.keys() - slow if (error := turn.exception())]
            if failures:
                raise failures[0]
            for turn in slow:
                self._run_late(threads.late.submit(self._follow_late, turn, running[turn], landed, stop), running[turn])
            self._last = landed
            self._again_until = max(self._again_until, landed.safe_until or ORIGIN)
            self._loads = self._loads or landed.end.chunk is not None
        if any(table.ddl for table in selected):
            self.request_flush(FlushReason.DDL)
        log.info("range applied", source=side.source_id, end=str(landed.end), tables=len(selected))
        if self.applied_log is not None:
            self.applied_log.append(landed)
        return True

    def _may_run_late(self, landed: Landed) -> bool:
        """Whether slow tables may run late: others wait. Not in a run that loads a snapshot: no range spans its end."""
        loads = self._loads or landed.end.chunk is not None
        return self.landed_log.waiting and not loads and not self.tables.requests.read_at

    def _run_late(self, late: Future[None], names: frozenset[TableName]) -> None:
        """Continue without tables whose turn takes long; they catch up when it ends."""
        self._aside.update(names)
        self._late[late] = names
        log.info("tables are slow, other tables continue", tables=sorted(".".join(name) for name in names))

    def _follow_late(self, turn: Future[None], names: frozenset[TableName], landed: Landed, stop: StopRequest) -> None:
        turn.result()
        with self._between_ranges:
            resumable = names - self._held  # the others stopped, or a new snapshot of them has started
            self._aside.difference_update(names - resumable)
        if resumable and not stop.requested:
            self._resume_tables(dict.fromkeys(resumable, landed.end), self._aside, LATE_SHORT_SECONDS)

    def _check_late(self, *, late: bool) -> None:
        """Raise the failure of a late table; `late`: wait for all of them."""
        for following in [following for following in self._late if late or following.done()]:
            following.result()
            del self._late[following]

    def _apply_groups(self, groups: Sequence[Sequence[TableEvents]], landed: Landed) -> None:
        """Apply a range to groups of tables, one after the other; a group that silver cannot follow stops alone."""
        for group in groups:
            try:
                self._apply_group(group, landed)
            except (SchemaError, QualityError) as error:
                self.stop_tables([table.name for table in group], error)

    def stop_tables(self, names: Collection[TableName], error: SchemaError | QualityError) -> None:
        """Stop tables that silver cannot follow. The checkpoint waits for them: a new run tries again."""
        self._held.update(names)
        self.stopped.update(dict.fromkeys(names, error))
        shown = [".".join(name) for name in names]
        log.warning("tables stopped, other tables continue", tables=shown, why=error.message, hint=error.hint)

    def _apply_group(self, group: Sequence[TableEvents], landed: Landed) -> None:
        for result in self.tables.apply(group, landed):
            if result.waits is not None:
                name = (result.schema, result.table)
                self._held.add(name)
                self.waiting[name] = result.waits
