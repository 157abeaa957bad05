"""The applying loop of one source: landed ranges go to the silver tables, some tables at a time."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed
from dmdelta.checkpoint import FlushReason, Point, Points, TablePoint
from dmdelta.engine.failure_log import FailureLog
from dmdelta.engine.landed_log import LandedLog
from dmdelta.engine.progress import Tally
from dmdelta.engine.requests import Requests, SilverSide
from dmdelta.engine.stop import StopRequest
from dmdelta.errors import QualityError, SchemaError, StageFailed
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sharding import Waiting
from dmdelta.silver.renaming import apply_group, plan_groups
from dmdelta.silver.request import ApplyResult
from dmdelta.silver.state import silver_position
from dmdelta.silver.survey import TableEvents, table_events, tables_with_events
from dmdelta.silver.target import Target
from dmdelta.silver.work import finish_statement

log = get_logger(__name__)
WAIT_SECONDS = 0.5
IDLE_SECONDS = 30.0
"""Without a new range for so long, what the source's tables are like is what its catalog says."""
RANGE_BYTES = 256 << 20
"""One range's share of the log: applying is cheaper in bulk, stopping is quicker in pieces."""
TABLES_AT_ONCE = 4


@dataclass(slots=True)
class ApplyingLoop:
    """What the loop needs of the world around it.

    Attributes:
        requests: what of a range goes to a table.
        request_flush: asks the flusher to write the checkpoint soon.
        tally: told of every applied table.
        record: writes down rows that fail what they should fulfil.
        landed: bronze's newest batch when the run began; None: nothing had landed.
        stopped: tables that silver cannot follow, or whose rows stop them: they are held, the others go on.
        waiting: shards that wait for others of their merged table: they are held, too.
        applied_log: gets the ranges that are done; None if nobody takes them.
    """

    spark: SparkSession
    side: SilverSide
    landed_log: LandedLog
    points: Points
    requests: Requests
    request_flush: Callable[[FlushReason], None]
    tally: Tally
    record: FailureLog
    landed: Landed | None = None
    stopped: dict[TableName, SchemaError | QualityError] = field(default_factory=dict)
    waiting: dict[TableName, Waiting] = field(default_factory=dict)
    applied_log: LandedLog | None = None
    _held: set[TableName] = field(default_factory=set)
    _last: Landed | None = None
    _between_ranges: threading.Lock = field(default_factory=threading.Lock)
    _of_thread: threading.local = field(default_factory=threading.local)
    _sessions: list[SparkSession] = field(default_factory=list)
    _given_up: threading.Event = field(default_factory=threading.Event)

    def run(self, stop: StopRequest) -> None:
        """Apply until the stop comes, or until landing is done and nothing waits. Ends at a range's end."""
        busy = time.monotonic()
        with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="apply") as pool:
            while not stop.requested:
                landed = self.landed_log.take(RANGE_BYTES, WAIT_SECONDS)
                if landed is not None:
                    with self._between_ranges, self.tally.spending(self.side.source_id, "apply"):
                        self._apply_range(pool, landed)
                        self._last = landed
                    if self.applied_log is not None:
                        self.applied_log.append(landed)
                    busy = time.monotonic()
                    continue
                finished = self.landed_log.finished
                if finished or time.monotonic() > busy + IDLE_SECONDS:
                    self.side.shards.heard_all(self.side.source_id)
                if finished:
                    return

    @property
    def held(self) -> frozenset[TableName]:
        """The tables that do not follow for now."""
        return frozenset(self._held)

    @property
    def reached(self) -> Position | None:
        """The end of the last range of this run; None before the first."""
        return self._last.end if self._last else None

    def hold(self, tables: Collection[TableName]) -> None:
        """Leave tables as they are from now on; a range under way is waited for. The global point waits for them."""
        with self._between_ranges:
            self._held.update(tables)

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
            self.requests.forget(name)
        reached: Landed | None = None
        while True:
            # Before the first range of this run, bronze may hold more than that range: the checkpoint is ahead of it.
            last = self._last or self.landed
            if last is not None and last is not reached:
                begins = {
                    name: begin if reached is None else max(begin, reached.end) for name, begin in goes_on.items()
                }
                with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="catch-up") as pool:
                    list(pool.map(self._catch_up, begins, begins.values(), repeat(last)))
                reached = last
            with self._between_ranges:
                if (self._last or self.landed) is reached:
                    self._held.difference_update(goes_on.keys() - self.stopped.keys() - self.waiting.keys())
                    return

    def _catch_up(self, name: TableName, begin: Position, last: Landed) -> None:
        if begin >= last.end or name in self.stopped or name in self.waiting:
            return
        side = self.side
        events = table_events(self.spark, side.lakehouse, side.source_id, name, begin, last.end)
        end = Point(last.end, str(last.gtid_set) or None)
        if side.table(name).merged:
            self.requests.catch_up(name, last.end)
        try:
            self._apply_group([events], replace(last, begin=begin, safe_until=None), end)
        except (SchemaError, QualityError) as error:
            self.stop_tables([name], error)
        else:
            if name not in self.waiting:
                self.requests.caught_up(name, last.end)

    def interrupt(self) -> None:
        """Give up the range under way: jobs are cancelled, tables that wait their turn are not begun."""
        self._given_up.set()
        for session in [self.spark, *self._sessions]:
            session.interruptAll()

    def settle(self) -> None:
        """Ask the tables of a range that was given up where they are: each is at a commit of its own.

        Raises:
            LakehouseError: a table's history cannot be read.
        """
        for schema, table in self.points.pending():
            commit = silver_position(self.spark, self.side.table((schema, table)))
            if commit is not None:
                self.points.applied(TablePoint(schema, table, Point(commit.tag.end), commit.version))

    def _apply_range(self, pool: ThreadPoolExecutor, landed: Landed) -> None:
        end = Point(landed.end, str(landed.gtid_set) or None)
        side = self.side
        events = tables_with_events(self.spark, side.lakehouse, side.source_id, landed.begin, landed.end)
        found = [table for table in events if side.rules.wanted(*table.name)]  # a shadow table has statements alone
        self.points.hand_over(end, [table.name for table in found])
        groups = plan_groups([table for table in found if table.name not in self._held])
        turns = plan_turns(groups, side.table)
        running = [pool.submit(self._apply_groups, turn, landed, end) for turn in turns]
        # Every table is tried even when one fails: the others' commits need no repeating.
        failures = [error for future in running if (error := future.exception())]
        if failures:
            raise failures[0]
        if any(table.ddl for table in found):
            self.request_flush(FlushReason.DDL)
        log.info("range applied", source=side.source_id, end=str(landed.end), tables=len(found))

    def _apply_groups(self, groups: Sequence[Sequence[TableEvents]], landed: Landed, end: Point) -> None:
        """Apply a range to groups of tables, one after the other; one that silver cannot follow stops alone."""
        for group in groups:
            try:
                self._apply_group(group, landed, end)
            except (SchemaError, QualityError) as error:
                self.stop_tables([table.name for table in group], error)

    def stop_tables(self, names: Collection[TableName], error: SchemaError | QualityError) -> None:
        """Leave tables that silver cannot follow as they are. The checkpoint waits for them: a new run tries again."""
        self._held.update(names)
        self.stopped.update(dict.fromkeys(names, error))
        shown = [".".join(name) for name in names]
        log.warning("tables stopped, the others go on", tables=shown, why=error.message, hint=error.hint)

    def _apply_group(self, tables: Sequence[TableEvents], landed: Landed, end: Point) -> None:
        """Apply a range to tables that change names with each other; nearly always it is one."""
        if self._given_up.is_set():
            raise StageFailed("the range was given up", hint="run again")
        spark = self._own_session()
        with self.turns(spark, [table.name for table in tables]):
            requests = [self.requests.request(spark, table, landed) for table in tables]
            for request in requests:
                if self.requests.is_read_at(request, landed):
                    self.points.applied(TablePoint(*request.name, end))  # what the range holds of it, the snapshot read
            for result in apply_group(spark, tables, requests):
                self._applied(result, end)

    def _applied(self, result: ApplyResult, end: Point) -> None:
        name = (result.schema, result.table)
        self.requests.applied(result)
        here = end
        if result.waits is not None:
            here = Point(result.end)
            self._held.add(name)
            self.waiting[name] = result.waits
        self.points.applied(TablePoint(*name, here, result.delta_version, result.table_info))
        self.tally.applied(self.side.source_id, result)
        self.tell_failures(name, result.end, result.row_count, result.failures)

    def tell_failures(self, name: TableName, end: Position, judged: int, failures: Mapping[str, int]) -> None:
        """Count rows that fail what they should fulfil, by its name, and write them down.

        Raises:
            LakehouseError: they cannot be written down.
        """
        if failures:
            self.tally.failed(self.side.source_id, ".".join(name), failures)
            self.record(name, end, judged, failures)

    @contextmanager
    def turns(self, spark: SparkSession, tables: Collection[TableName]) -> Iterator[None]:
        """The right to write the merged tables among those that the rows of source tables go to.

        Raises:
            LakehouseError, CommitConflict: what an earlier run has begun to do to one of them cannot be finished.
        """
        targets = {target.route.name: target for name in tables if (target := self.side.table(name)).merged}
        with ExitStack() as turns:
            for name in sorted(targets):
                if turns.enter_context(self.side.shards.turn(name)):
                    finish_statement(spark, targets[name], self.side.run)
            yield

    def _own_session(self) -> SparkSession:
        """A session for this thread: Delta's transaction ids are session confs."""
        if not hasattr(self._of_thread, "spark"):
            self._of_thread.spark = clone_session(self.spark)
            self._sessions.append(self._of_thread.spark)
        spark: SparkSession = self._of_thread.spark
        return spark


def plan_turns(
    groups: Sequence[Sequence[TableEvents]], target: Callable[[TableName], Target]
) -> list[list[Sequence[TableEvents]]]:
    """Groups of tables that go on side by side; those of one merged table are together: they write it in turns."""
    turns: dict[object, list[Sequence[TableEvents]]] = {}
    for group in groups:
        merged = [place.route.name for table in group if (place := target(table.name)).merged]
        turns.setdefault(merged[0] if merged else id(group), []).append(group)
    return list(turns.values())
