"""The applying loop of one source: landed ranges go to the silver tables, some tables at a time."""

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
"""Without a new range for so long, what the source's tables are like is what its catalog says."""
RANGE_BYTES = 256 << 20
"""One range's share of the log: applying is cheaper in bulk, stopping is quicker in pieces."""
TABLES_AT_ONCE = 4
LATE_AT_ONCE = 2
"""So many turns may be left behind at a time: the others still have threads."""
SHORT_SECONDS = 30.0
"""A table that caught up in less than that takes its last step while the others wait."""
LATE_SHORT_SECONDS = 5.0
"""The same for one that is slow: if it never is so fast, it goes on by itself, behind the others."""


@dataclass(frozen=True, slots=True)
class _Threads:
    """Those that apply a range, and those that follow what is late."""

    pool: ThreadPoolExecutor
    late: ThreadPoolExecutor


@dataclass(slots=True)
class ApplyingLoop:
    """What the loop needs of the world around it.

    Attributes:
        tables: applies a range to some of the source's tables.
        request_flush: asks the flusher to write the checkpoint soon.
        landed: bronze's newest batch when the run began; None: nothing had landed.
        stopped: tables that silver cannot follow, or whose rows stop them: they are held, the others go on.
        waiting: shards that wait for others of their merged table: they are held, too.
        reloads: what makes tables anew that stopped when a snapshot was to do so, ahead of their catching up.
        applied_log: gets the ranges that are done; None if nobody takes them.
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
        """Apply until the stop comes, or until landing is done and nothing waits. Ends at a range's end."""
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
        """Where the source's rows go."""
        return self.tables.side

    @property
    def held(self) -> frozenset[TableName]:
        """The tables that do not follow for now."""
        return frozenset(self._held | self._aside)

    @property
    def reached(self) -> Position | None:
        """The end of the last range of this run; None before the first."""
        return self._last.end if self._last else None

    def hold(self, tables: Collection[TableName]) -> None:
        """Leave tables as they are from now on; a range under way is waited for. The global point waits for them."""
        with self._between_ranges:
            self._held.update(tables)
        wait([late for late, names in list(self._late.items()) if not names.isdisjoint(tables)])

    def resync(self, stop: StopRequest) -> None:
        """Have shards that need not wait any longer catch up, until the stop comes or none ever will in this run."""
        shards, source_id = self.side.shards, self.side.source_id
        while not stop.requested:
            with shards.working():
                released = shards.released(source_id)
                for name, position in released.items():
                    log.info("shard goes on", shard=".".join(name), source=source_id, at=str(position))
                if released:
                    self.release(released)
            if not released and shards.at_rest():
                return
            if not released:
                stop.wait(WAIT_SECONDS)

    def release(self, goes_on: Mapping[TableName, Position]) -> None:
        """Have held tables, by where their log goes on, catch up with the others and then go on with them.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        for name in goes_on:
            self.stopped.pop(name, None)
            self.waiting.pop(name, None)
            self.tables.requests.forget(name)
            if (reload := self.reloads.pop(name, None)) is not None:
                reload()
        self._bring_back(goes_on, self._held)

    @contextmanager
    def aside(self, name: TableName, stop: StopRequest) -> Iterator[bool]:
        """Leave a table to the block, whose end has it catch up with the others; False: it is held already.

        If the block raises, or the stop has come, the table stays where it is, and the next run goes on from there.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        with self._between_ranges:
            last = self._last
            if name in self.held or (last is not None and last.end.chunk is not None):
                last = None  # a snapshot's rows are still to come: no range goes from them into the log behind them
            if last is not None:
                self._aside.add(name)
        yield last is not None
        if name in self._held:  # somebody has begun to read it anew
            self._aside.discard(name)
        elif last is not None and not stop.requested:
            self._bring_back({name: last.end}, self._aside)

    def _bring_back(
        self, goes_on: Mapping[TableName, Position], left: set[TableName], short: float = SHORT_SECONDS
    ) -> None:
        """Have tables that are left as they are catch up, by where their log goes on, and follow again."""
        reached, took = None, short
        while took >= short:
            began = time.monotonic()
            reached = self._catch_up_all(goes_on, reached)
            took = time.monotonic() - began
        # The others go on meanwhile, so the last step is only taken while they wait: it is a short one.
        with self._between_ranges:
            self._catch_up_all(goes_on, reached)
            kept = self.stopped.keys() | self.waiting.keys() if left is self._held else frozenset()
            left.difference_update(goes_on.keys() - kept)

    def _catch_up_all(self, goes_on: Mapping[TableName, Position], reached: Landed | None) -> Landed | None:
        """Apply to held tables what they lack, from where their logs go on, or `reached` if they are there already.

        Returns:
            The range up to which they are.
        """
        # Before the first range of this run, bronze may hold more than that range: the checkpoint is ahead of it.
        last = self._last or self.landed
        if last is not None and last is not reached:
            begins = {name: begin if reached is None else max(begin, reached.end) for name, begin in goes_on.items()}
            if len(begins) == 1:  # in this thread, which has its session already
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
        # Of a table that was read anew, or waited, its own commits say what may be there already.
        again_until = self._again_until if name in self._aside else None
        try:
            self._apply_group([events], replace(last, begin=begin, safe_until=again_until))
        except (SchemaError, QualityError) as error:
            self.stop_tables([name], error)
        else:
            if name not in self.waiting:
                self.tables.requests.caught_up(name, last.end)

    def _apply_range(self, threads: "_Threads", landed: Landed, stop: StopRequest) -> bool:
        """Apply a range to all tables that do follow; False if it first takes one that is to catch up."""
        side, tables = self.side, self.tables
        with self._between_ranges, tables.tally.spending(side.source_id, "apply"):
            events = tables_with_events(self.spark, side.lakehouse, side.source_id, landed.begin, landed.end)
            found = [table for table in events if side.rules.wanted(*table.name)]  # a shadow table has statements alone
            if any(len(group) > 1 and self._aside & names_of([group]) for group in plan_groups(found)):
                return False  # it changes its name with another one
            tables.points.hand_over(Point(landed.end, str(landed.gtid_set) or None), [table.name for table in found])
            groups = plan_groups([table for table in found if table.name not in self.held])
            running = {
                threads.pool.submit(self._apply_groups, turn, landed): names_of(turn)
                for turn in plan_turns(groups, side.table)
            }
            left = await_turns(running, LATE_AT_ONCE - len(self._late), lambda: self._may_leave(landed))
            # Every table is tried even when one fails: the others' commits need no repeating.
            failures = [error for turn in running.keys() - left if (error := turn.exception())]
            if failures:
                raise failures[0]
            for turn in left:
                self._leave(threads.late.submit(self._follow_late, turn, running[turn], landed, stop), running[turn])
            self._last = landed
            self._again_until = max(self._again_until, landed.safe_until or ORIGIN)
            self._loads = self._loads or landed.end.chunk is not None
        if any(table.ddl for table in found):
            self.request_flush(FlushReason.DDL)
        log.info("range applied", source=side.source_id, end=str(landed.end), tables=len(found))
        if self.applied_log is not None:
            self.applied_log.append(landed)
        return True

    def _may_leave(self, landed: Landed) -> bool:
        """Others wait for slow tables. Not in a run that loads a snapshot: no range is to go from it into the log."""
        loads = self._loads or landed.end.chunk is not None
        return self.landed_log.waiting and not loads and not self.tables.requests.read_at

    def _leave(self, late: Future[None], names: frozenset[TableName]) -> None:
        """Go on without tables whose turn takes long; they catch up when it ends."""
        self._aside.update(names)
        self._late[late] = names
        log.info("tables are slow, the others go on", tables=sorted(".".join(name) for name in names))

    def _follow_late(self, turn: Future[None], names: frozenset[TableName], landed: Landed, stop: StopRequest) -> None:
        turn.result()
        with self._between_ranges:
            back = names - self._held  # somebody has begun to read the others anew, or they stopped
            self._aside.difference_update(names - back)
        if back and not stop.requested:
            self._bring_back(dict.fromkeys(back, landed.end), self._aside, LATE_SHORT_SECONDS)

    def _check_late(self, *, late: bool) -> None:
        """Raise what made a late table fail; `late`: wait for all of them."""
        for following in [following for following in self._late if late or following.done()]:
            following.result()
            del self._late[following]

    def _apply_groups(self, groups: Sequence[Sequence[TableEvents]], landed: Landed) -> None:
        """Apply a range to groups of tables, one after the other; one that silver cannot follow stops alone."""
        for group in groups:
            try:
                self._apply_group(group, landed)
            except (SchemaError, QualityError) as error:
                self.stop_tables([table.name for table in group], error)

    def stop_tables(self, names: Collection[TableName], error: SchemaError | QualityError) -> None:
        """Leave tables that silver cannot follow as they are. The checkpoint waits for them: a new run tries again."""
        self._held.update(names)
        self.stopped.update(dict.fromkeys(names, error))
        shown = [".".join(name) for name in names]
        log.warning("tables stopped, the others go on", tables=shown, why=error.message, hint=error.hint)

    def _apply_group(self, group: Sequence[TableEvents], landed: Landed) -> None:
        for result in self.tables.apply(group, landed):
            if result.waits is not None:
                name = (result.schema, result.table)
                self._held.add(name)
                self.waiting[name] = result.waits
