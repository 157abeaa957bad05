"""Views that read tables live, in the lakehouse's catalog: replaced while the task runs, to keep their tails short."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum

from pyspark.sql import SparkSession

from dmdelta.bronze.retention import first_day_needed
from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.supervise import SupervisedLoop
from dmdelta.engine.live.known_log import KnownLog
from dmdelta.engine.live.place import live_position
from dmdelta.engine.live.source import LiveSource
from dmdelta.engine.live.sql import LIVE
from dmdelta.engine.live.tables import LiveTables
from dmdelta.engine.live.view_plan import NoView, valid_until, view_parts
from dmdelta.errors import ConfigError, DmdeltaError, NotReadable, as_ours
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.lakehouse.views import assert_owned_view, drop_view, replace_view
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.silver.live.state import not_readable
from dmdelta.silver.live.view_query import ViewPart, view_query

log = get_logger(__name__)
POLL_SECONDS = 5.0
CANCEL_SECONDS = 10.0
"""How long a stop waits for a round whose jobs it cancels."""
IDLE_FACTOR = 9
"""A round is followed by this many times its duration without one: views take at most a tenth of a thread's time."""

SourceTable = tuple[str, TableName]
"""The source's ID, and the table's name there."""


class Outcome(Enum):
    """What became of a view."""

    REPLACED = timedelta(hours=6)
    """It is replaced when silver has changed; after this time anyway, because it expires."""
    POSTPONED = timedelta(seconds=15)
    """It is as it was, because silver has to advance first, or because of an error."""
    REFUSED = timedelta(minutes=10)
    """The table cannot have one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last attempt to replace a view.

    Attributes:
        versions: silver's versions of the view's source tables before it, as far as the run had written them.
        at: in UTC.
    """

    versions: Sequence[int | None]
    at: datetime
    outcome: Outcome


def plan_due(
    versions: Mapping[TableName, Sequence[int | None]], attempts: Mapping[TableName, Attempt], now: datetime
) -> list[TableName]:
    """The tables whose views have to be replaced, the longest waiting first.

    Args:
        versions: the current silver versions of each table's source tables, as in `Attempt`.
    """

    def is_due(name: TableName) -> bool:
        last = attempts.get(name)
        if last is None or now - last.at >= last.outcome.value:
            return True
        return last.outcome is Outcome.REPLACED and last.versions != versions[name]

    never = datetime.min.replace(tzinfo=timezone.utc)
    return sorted(filter(is_due, versions), key=lambda name: attempts[name].at if name in attempts else never)


@dataclass(slots=True)
class LiveViews(SupervisedLoop):
    """Maintains `<schema>.<table>_live` for each silver table.

    Attributes:
        tables: with a session of its own.
        versions: the silver versions that the run has written.
    """

    tables: LiveTables
    versions: Callable[[], Mapping[SourceTable, int | None]]
    _parts: dict[TableName, list[SourceTable]] = field(default_factory=dict)
    _attempts: dict[TableName, Attempt] = field(default_factory=dict)
    _refused: dict[TableName, str] = field(default_factory=dict)
    _owned: set[TableName] = field(default_factory=set)
    _logs: dict[str, KnownLog] = field(default_factory=dict)

    @property
    def _spark(self) -> SparkSession:
        return self.tables.task.spark

    def renew(self, stop: StopRequest | None = None, deadline: float | None = None) -> int:
        """Replace the views that have to be, until a stop or the deadline (monotonic); returns how many were due.

        Raises:
            DmdeltaError: bronze or dm_meta cannot be read.
        """
        written = self.versions()
        self._look_up(written)
        current = {name: [written.get(part) for part in parts] for name, parts in self._parts.items()}
        due = plan_due(current, self._attempts, datetime.now(timezone.utc))
        live = self._prepared(due)
        for name in due if live else ():
            if (stop is not None and stop.requested) or (deadline is not None and time.monotonic() >= deadline):
                break
            self._attempts[name] = Attempt(current[name], datetime.now(timezone.utc), self._replace(name, live))
        return len(due)

    def end(self, seconds: float | None) -> None:
        """Stop the loop, then replace the views a last time, so that they stay short while no task runs.

        Args:
            seconds: for the views; None: as long as it takes. 0: not at all.
        """
        deadline = time.monotonic() + (seconds or 0)
        cancelled_until = time.monotonic() + CANCEL_SECONDS
        while not self.join(1.0):
            cancel_jobs(self._spark)
            if time.monotonic() >= cancelled_until:
                log.warning("live views not replaced at the end", why="a job does not end")
                return
        try:
            if seconds != 0:
                self.renew(deadline=deadline if seconds is not None else None)
        except Exception as error:  # noqa: BLE001 - the run has its own result
            ours = as_ours(error, "the live views")
            unknown = None if error is ours else error
            log.warning("live views not replaced at the end", exc=unknown, why=ours.message, hint=ours.hint)

    def _follow(self, stop: StopRequest) -> None:
        pause = 0.0
        while not stop.wait(max(POLL_SECONDS, pause)):
            began = time.monotonic()
            due = self.renew(stop)
            pause = IDLE_FACTOR * (time.monotonic() - began) if due else 0.0

    def _should_retry(self, error: Exception, stop: StopRequest) -> bool:
        if stop.requested:
            return False
        ours = as_ours(error, "the live views")
        unknown = None if error is ours else error
        log.error("live views not replaced, retrying later", exc=unknown, why=ours.message, hint=ours.hint)
        return True

    def _look_up(self, written: Mapping[SourceTable, int | None]) -> None:
        """Look up the tables of the task again if the run has written one that is not among them."""
        known = {part for parts in self._parts.values() for part in parts}
        if not self._parts or not written.keys() <= known:
            self._parts = {
                name: [(source.config.source_id, table) for source, table in parts]
                for name, parts in self.tables.names().items()
            }

    def _prepared(self, names: Sequence[TableName]) -> dict[str, LiveSource]:
        """The sources of tables at the end of bronze, with what all of these need; empty if nothing has landed."""
        wanted = [part for name in names for part in self._parts[name]]
        live: dict[str, LiveSource] = {}
        for source in self.tables.sources:
            tables = [table for source_id, table in wanted if source_id == source.config.source_id]
            if tables:
                try:
                    position = live_position(source, None)
                except ConfigError:
                    return {}
                # The run's own memory has the newest rows.
                known = self._logs.setdefault(source.config.source_id, KnownLog(BatchMemory()))
                live[source.config.source_id] = LiveSource(source, position, known)
                live[source.config.source_id].prepare(tables)
        return live

    def _replace(self, name: TableName, live: Mapping[str, LiveSource]) -> Outcome:
        """Replace the view of a table, or drop it if the table cannot have one."""
        table = ".".join(name)
        try:
            planned = self._planned(name, live)
            if isinstance(planned, NoView):
                self._refuse(name, planned.reason)
                return Outcome.REFUSED
            self._write(name, planned)
        except NotReadable as error:
            log.debug("live view kept as it is", table=table, why=error.message)
            return Outcome.POSTPONED
        except DmdeltaError as error:
            log.warning("live view not replaced, retrying later", table=table, why=error.message, hint=error.hint)
            return Outcome.POSTPONED
        return Outcome.REPLACED

    def _planned(self, name: TableName, live: Mapping[str, LiveSource]) -> Sequence[ViewPart] | NoView:
        if _view_name(name) in self._parts:
            return NoView("another table has the name of its view")
        return view_parts([(live[source_id], table) for source_id, table in self._parts[name]])

    def _write(self, name: TableName, parts: Sequence[ViewPart]) -> None:
        view, task, now = self._view(name), self.tables.task.spec.name, datetime.now(timezone.utc)
        until = self._until(parts, now)
        if until <= now:
            raise not_readable(name, "silver is days behind bronze, whose changes expire", None)
        if name not in self._owned:
            assert_owned_view(self._spark, view, task)
            self._owned.add(name)
        replace_view(self._spark, view, view_query(parts, until), task)
        self._refused.pop(name, None)

    def _until(self, parts: Sequence[ViewPart], now: datetime) -> datetime:
        days = self.tables.task.spec.maintenance.bronze_days
        if days is None:
            return valid_until(now, None, None)
        landed = [first_day_needed(self._spark, part.bronze, part.source_id, part.begin) for part in parts]
        return valid_until(now, min(filter(None, landed), default=None), days)

    def _refuse(self, name: TableName, reason: str) -> None:
        if self._refused.get(name) == reason:
            return
        log.warning("no live view", table=".".join(name), why=reason)
        self._refused[name] = reason
        if _view_name(name) not in self._parts:
            assert_owned_view(self._spark, self._view(name), self.tables.task.spec.name)
            drop_view(self._spark, self._view(name))

    def _view(self, name: TableName) -> str:
        return self.tables.task.lakehouse.silver(*_view_name(name))


def _view_name(name: TableName) -> TableName:
    return name[0], f"{name[1]}{LIVE}"
