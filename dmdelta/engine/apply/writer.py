"""Applies a range of one source's log to tables, and reports silver's commits."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.progress import LandedRange
from dmdelta.checkpoint import Point, Points, TablePoint
from dmdelta.engine.apply.requests import RangeRequests
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import StageFailed
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.lakehouse.profiles import Profile, plan_profile, profile_session
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.apply import apply_group
from dmdelta.silver.apply.context import finish_statement
from dmdelta.silver.apply.request import ApplyResult
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.silver.table.state import silver_position


def point_of(landed: LandedRange) -> Point:
    """The point at the end of a range."""
    return Point(landed.end, str(landed.gtid_set) or None)


class ThreadSessions:
    """A session per calling thread and profile: Delta's transaction ids are session confs."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._of_thread = threading.local()
        self._all: list[SparkSession] = []

    def own(self, profile: Profile = Profile.LARGE) -> SparkSession:
        """The session of the calling thread for work of a profile."""
        if not hasattr(self._of_thread, "sessions"):
            self._of_thread.sessions = {}
        own: dict[Profile, SparkSession] = self._of_thread.sessions
        if profile not in own:
            own[profile] = profile_session(self._spark, profile)
            self._all.append(own[profile])
        return own[profile]

    def interrupt_all(self) -> None:
        """Cancel the running jobs of all sessions."""
        for session in self._all:
            cancel_jobs(session)


RecordFailures = Callable[[TableName, Position, int, Mapping[str, int]], None]
"""Records how many of the evaluated rows fail each of a table's expectations, up to a position."""


@dataclass(slots=True)
class TableApply:
    """The collaborators of applying. Thread-safe, with each table in one thread at a time.

    Attributes:
        requests: determines what of a range is applied to a table.
        counters: counts every applied table.
        record: records rows that fail expectations.
    """

    spark: SparkSession
    context: SilverContext
    points: Points
    requests: RangeRequests
    counters: RunCounters
    record: RecordFailures
    _sessions: ThreadSessions = field(init=False)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._sessions = ThreadSessions(self.spark)

    def apply(self, tables: Sequence[TableEvents], landed: LandedRange) -> Iterator[ApplyResult]:
        """Apply a range to tables that exchange names with each other; nearly always to a single one.

        Yields:
            The results, while no other thread writes the same merged table.

        Raises:
            DmdeltaError: as `apply_group`.
        """
        if self._cancelled.is_set():
            raise StageFailed("the range was cancelled", hint="run again")
        scanned = 0 if self.context.memory.covers(landed.begin, landed.end) else landed.size
        profile = plan_profile(sum(table.row_count for table in tables), scanned)
        spark, end = self.session(profile), point_of(landed)
        with self.turns(spark, [table.name for table in tables]):
            requests = [self.requests.request(spark, table, landed) for table in tables]
            for request in requests:
                if self.requests.is_read_at(request, landed):
                    self.points.applied(TablePoint(*request.name, end))  # the snapshot already contains the range
            for result in apply_group(spark, tables, requests):
                self._applied(result, end)
                yield result

    def resume(self, name: TableName, landed: LandedRange) -> Iterator[ApplyResult]:
        """Apply what a table misses of a range whose events are not known. Yields and raises as `apply`."""
        spark, context = self.session(), self.context
        with self.turns(spark, [name]):
            begin = self.requests.begin(spark, name, landed)
            if begin < landed.end:
                events = table_events(spark, context, name, begin, landed.end)
                yield from self.apply([events], replace(landed, begin=begin))

    def session(self, profile: Profile = Profile.LARGE) -> SparkSession:
        """The session of the calling thread for writing tables."""
        return self._sessions.own(profile)

    def _applied(self, result: ApplyResult, end: Point) -> None:
        name = (result.schema, result.table)
        self.requests.applied(result)
        here = end if result.waits is None else Point(result.end)
        self.points.applied(TablePoint(*name, here, result.delta_version, result.table_info))
        self.counters.applied(self.context.source_id, result)
        self.record_failures(name, result.end, result.row_count, result.failures)

    def record_failures(self, name: TableName, end: Position, evaluated: int, failures: Mapping[str, int]) -> None:
        """Count and record rows that fail expectations.

        Raises:
            LakehouseError: they cannot be recorded.
        """
        if failures:
            self.counters.failed(self.context.source_id, ".".join(name), failures)
            self.record(name, end, evaluated, failures)

    @contextmanager
    def turns(self, spark: SparkSession, tables: Collection[TableName]) -> Iterator[None]:
        """Acquire the right to write the merged tables that source tables are routed to.

        Raises:
            LakehouseError, CommitConflict: an unfinished statement of an earlier run cannot be finished.
        """
        targets = {target.route.name: target for name in tables if (target := self.context.table(name)).merged}
        with ExitStack() as turns:
            for name in sorted(targets):
                if turns.enter_context(self.context.shards.turn(name)):
                    finish_statement(spark, targets[name], self.context.run)
            yield

    def interrupt(self) -> None:
        """Cancel the running turns: their jobs are cancelled, no other table is started."""
        self._cancelled.set()
        cancel_jobs(self.spark)
        self._sessions.interrupt_all()

    def settle(self) -> None:
        """Read the positions of the tables of cancelled turns: each is at one of its own commits.

        Raises:
            LakehouseError: a table's history cannot be read.
        """
        for schema, table in self.points.pending():
            commit = silver_position(self.spark, self.context.table((schema, table)))
            if commit is not None:
                self.points.applied(TablePoint(schema, table, Point(commit.tag.end), commit.version))
