"""The applying loop of one source: landed ranges go to the silver tables, some tables at a time."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed
from dmdelta.checkpoint import (
    FlushReason,
    Point,
    Points,
    RestartPlan,
    SafeModePolicy,
    SourceEvidence,
    TableEvidence,
    TablePoint,
    plan_restart,
)
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.engine.landed_log import LandedLog
from dmdelta.engine.stop import StopRequest
from dmdelta.errors import StageFailed
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply import ApplyRequest, ApplyResult, Mode, apply_table
from dmdelta.silver.survey import TableEvents, silver_position, silver_state, table_events, tables_with_events

log = get_logger(__name__)
WAIT_SECONDS = 0.5
RANGE_BYTES = 256 << 20
"""One range's share of the log: applying is cheaper in bulk, stopping is quicker in pieces."""
TABLES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class SilverTarget:
    """Whose changes go where."""

    lakehouse: Lakehouse
    task: str
    source_id: str
    run: str


@dataclass(slots=True)
class ApplyingLoop:
    """What the loop needs of the world around it.

    Attributes:
        evidence: what was known of the source when the run began: a table's first range is planned from it.
        read_at: where the log goes on for tables that a snapshot read exactly at one position.
        request_flush: asks the flusher to write the checkpoint soon.
        report: told of every applied table.
    """

    spark: SparkSession
    target: SilverTarget
    landed_log: LandedLog
    points: Points
    evidence: SourceEvidence
    policy: SafeModePolicy
    request_flush: Callable[[FlushReason], None]
    report: Callable[[ApplyResult], None]
    read_at: dict[TableName, Position] = field(default_factory=dict)
    _plans: dict[TableName, RestartPlan] = field(default_factory=dict)
    _structures: dict[TableName, TableSchema] = field(default_factory=dict)
    _versions: dict[TableName, int] = field(default_factory=dict)
    _safe_until: dict[TableName, Position] = field(default_factory=dict)
    _held: set[TableName] = field(default_factory=set)
    _last: Landed | None = None
    _between_ranges: threading.Lock = field(default_factory=threading.Lock)
    _began: float = field(default_factory=time.monotonic)
    _of_thread: threading.local = field(default_factory=threading.local)
    _sessions: list[SparkSession] = field(default_factory=list)
    _given_up: threading.Event = field(default_factory=threading.Event)

    def run(self, stop: StopRequest) -> None:
        """Apply until the stop comes, or until landing is done and nothing waits. Ends at a range's end."""
        with ThreadPoolExecutor(TABLES_AT_ONCE, thread_name_prefix="apply") as pool:
            while not stop.requested:
                landed = self.landed_log.take(RANGE_BYTES, WAIT_SECONDS)
                if landed is not None:
                    with self._between_ranges:
                        self._apply_range(pool, landed)
                        self._last = landed
                elif self.landed_log.finished:
                    return

    @property
    def reached(self) -> Position | None:
        """The end of the last range of this run; None before the first."""
        return self._last.end if self._last else None

    def hold(self, tables: Collection[TableName]) -> None:
        """Leave tables as they are from now on; a range under way is waited for. The global point waits for them."""
        with self._between_ranges:
            self._held.update(tables)

    def release(self, goes_on: Mapping[TableName, Position]) -> None:
        """Have held tables, by where their log goes on, catch up with the others and then go on with them.

        Raises:
            DmdeltaError: as `apply_table`.
        """
        for name in goes_on:
            for known in (self._plans, self._structures, self._versions):
                known.pop(name, None)
        reached: Landed | None = None
        while True:
            last = self._last
            if last is not None and last is not reached:
                for name, begin in goes_on.items():
                    self._catch_up(name, begin if reached is None else max(begin, reached.end), last)
                reached = last
            with self._between_ranges:
                if self._last is reached:
                    self._held.difference_update(goes_on)
                    return

    def _catch_up(self, name: TableName, begin: Position, last: Landed) -> None:
        if begin >= last.end:
            return
        target = self.target
        events = table_events(self.spark, target.lakehouse, target.source_id, name, begin, last.end)
        end = Point(last.end, str(last.gtid_set) or None)
        self._apply_table(events, replace(last, begin=begin, safe_until=None), end)

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
        target = self.target
        for schema, table in self.points.pending():
            commit = silver_position(self.spark, target.lakehouse, target.task, target.source_id, (schema, table))
            if commit is not None:
                self.points.applied(TablePoint(schema, table, Point(commit.tag.end), commit.version))

    def _apply_range(self, pool: ThreadPoolExecutor, landed: Landed) -> None:
        end = Point(landed.end, str(landed.gtid_set) or None)
        found = tables_with_events(self.spark, self.target.lakehouse, self.target.source_id, landed.begin, landed.end)
        self.points.hand_over(end, [table.name for table in found])
        # Every table is tried even when one fails: the others' commits need no repeating.
        free = [table for table in found if table.name not in self._held]
        running = [pool.submit(self._apply_table, table, landed, end) for table in free]
        results = [future.exception() for future in running]
        failure = next((error for error in results if error is not None), None)
        if failure is not None:
            raise failure
        if any(table.ddl for table in found):
            self.request_flush(FlushReason.DDL)
        log.info("range applied", source=self.target.source_id, end=str(landed.end), tables=len(found))

    def _apply_table(self, table: TableEvents, landed: Landed, end: Point) -> None:
        if self._given_up.is_set():
            raise StageFailed("the range was given up", hint="run again")
        spark = self._own_session()
        plan, name = self._plan(spark, table), table.name
        read_at = self._read_at(name, landed)
        begin = max(landed.begin, plan.start, read_at or landed.begin)
        if begin >= landed.end:
            if begin == read_at:
                self.points.applied(TablePoint(*name, end))  # what the range holds of it was read by the snapshot
            return
        elapsed = timedelta(seconds=time.monotonic() - self._began)
        safe_until = max((landed.safe_until if read_at is None else None, self._safe_until.get(name)), key=_or_origin)
        again = safe_until is not None and begin < safe_until
        safe = again or plan.is_safe(begin, elapsed)
        request = ApplyRequest(
            lakehouse=self.target.lakehouse,
            task=self.target.task,
            source_id=self.target.source_id,
            run=self.target.run,
            schema=table.schema,
            table=table.table,
            begin=begin,
            end=landed.end,
            batch=landed.batch,
            mode=Mode.SAFE if safe else Mode.NORMAL,
            known=self._structures.get(name),
            events=table if begin == landed.begin else None,
            applied=self._versions.get(name),
            safe_until=self._safe_until.get(name),
        )
        result = apply_table(spark, request)
        if result.structure is not None and result.commit is not None:
            self._structures[name] = result.structure
            self._versions[name] = result.commit.tag.version
        self.points.applied(TablePoint(*name, end, result.delta_version, result.table_info))
        self.report(result)

    def _read_at(self, name: TableName, landed: Landed) -> Position | None:
        """Where the log goes on for a table that was read exactly there, if the range is of that log."""
        position = self.read_at.get(name)
        return position if position is not None and landed.end.epoch >= position.epoch else None

    def _plan(self, spark: SparkSession, table: TableEvents) -> RestartPlan:
        """The plan of a table that this run meets for the first time; later ranges follow the first by themselves."""
        name = table.name
        plan = self._plans.get(name)
        if plan is None:
            state = silver_state(spark, self.target, table)
            plan = plan_restart(
                TableEvidence(table.schema, table.table, state.position, state.delta_version),
                self.evidence,
                self.policy,
            )
            self._plans[name] = plan
            if state.commit is not None:
                self._versions[name] = state.commit.tag.version
                if state.commit.tag.safe_until is not None:
                    self._safe_until[name] = state.commit.tag.safe_until
            if state.position is not None:
                self.points.applied(TablePoint(*name, Point(state.position), state.delta_version))
            log.info("table goes on", table=f"{table.schema}.{table.table}", start=str(plan.start), why=plan.reason)
        return plan

    def _own_session(self) -> SparkSession:
        """A session for this thread: Delta's transaction ids are session confs."""
        if not hasattr(self._of_thread, "spark"):
            self._of_thread.spark = clone_session(self.spark)
            self._sessions.append(self._of_thread.spark)
        spark: SparkSession = self._of_thread.spark
        return spark


def _or_origin(position: Position | None) -> Position:
    return position or ORIGIN
