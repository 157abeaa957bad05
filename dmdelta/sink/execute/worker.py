"""A worker: executes the batches of its queue in order, each in one transaction that also records it."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.errors import SinkError, TargetUnavailable
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.transaction import BatchWork, Single
from dmdelta.sink.metrics import WorkerCounts
from dmdelta.sink.read.literals import NAMELESS
from dmdelta.sink.target.connection import (
    TARGET_RETRY,
    TargetServer,
    execute,
    execute_under_protest,
    is_retryable,
    translated,
)
from dmdelta.sink.target.metadata import Encoded, Metadata
from dmdelta.sink.target.target_session import TargetSession

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
_DRIVER_ERRORS = (pymysql.err.MySQLError, OSError)


@dataclass(frozen=True, slots=True)
class Batch:
    """The work of one transaction.

    Attributes:
        ordinal: its number among the worker's transactions in this run.
        first, last: the range of `seq` in which its changes take effect.
        place: maps an event's `seq` to its log position.
    """

    ordinal: int
    epoch: int
    work: BatchWork
    style: Style
    first: int
    last: int
    place: Callable[[int], Position]


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a checkpoint snapshot: when the worker reaches it, everything before it has been executed."""

    id: int


Message = Batch | Mark | None
"""None: the end."""


@dataclass(slots=True)
class Worker:
    """One connection, one thread, one queue.

    Attributes:
        received: called for every mark, with the worker's number.
        failed: called when the worker fails; after that it only empties its queue.
        broken: it has failed.
        unexecuted: the target's tables with changes that it received but did not execute.
    """

    number: int
    server: TargetServer
    metadata: Metadata
    received: Callable[[int, int], object]
    failed: Callable[[BaseException], None]
    depth: int = 8
    retry: Retry = TARGET_RETRY
    counts: WorkerCounts = field(default_factory=WorkerCounts)
    stopping: threading.Event = field(default_factory=threading.Event)
    queue: "queue.Queue[Message]" = field(init=False)
    _session: TargetSession = field(init=False)
    broken: bool = False
    unexecuted: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.queue = queue.Queue(self.depth)
        self._session = TargetSession(self.server, retry=self.retry, stopping=self.stopping)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"sink-{self.number}", daemon=True)
        self._thread.start()

    def give(self, message: "Message", deadline: float) -> bool:
        """Put a message into the queue; False if there is no space until the deadline (`time.monotonic`)."""
        try:
            self.queue.put(message, timeout=max(0.01, deadline - time.monotonic()))
        except queue.Full:
            return False
        return True

    def leave(self) -> None:
        """End after the current batch: what is still queued is executed after the next start."""
        while True:
            try:
                message = self.queue.get_nowait()
            except queue.Empty:
                break
            if isinstance(message, Batch):
                self.unexecuted |= message.work.tables
        self.queue.put(None)

    def join(self, seconds: float) -> bool:
        """Wait for the thread to end; False after a timeout."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def cut_off(self) -> None:
        """End the session of a thread that does not end: the target rolls back its transaction."""
        self._session.cut_off()

    def _run(self) -> None:
        try:
            while (message := self.queue.get()) is not None:
                if self.broken:
                    self.unexecuted |= message.work.tables if isinstance(message, Batch) else set()
                elif isinstance(message, Mark):
                    self.received(message.id, self.number)
                else:
                    self._attempt(message)
        finally:
            self._session.close()

    def _attempt(self, batch: Batch) -> None:
        try:
            self._execute(batch)
        except BaseException as error:  # noqa: BLE001 - the sink raises it
            self.unexecuted |= batch.work.tables
            self.broken = True
            self.failed(error)

    def _execute(self, batch: Batch) -> None:
        """Execute a batch; retry after transient errors."""
        try:
            self._session.attempt(lambda failures: self._once(batch, failures), quotes_rows=True)
        except TargetUnavailable:
            raise
        except SinkError as error:
            raise self._explained(error, batch) from error
        self.counts.rows += len(batch.work)

    def _once(self, batch: Batch, failures: int) -> None:
        self.counts.retries += bool(failures)
        if not failures or not self._was_committed(batch):
            self._transaction(batch)

    def _was_committed(self, batch: Batch) -> bool:
        """Whether a transaction with an unknown outcome was committed; waits for one that is still running.

        On another connection than the failed one, whose open transaction would see its own record.
        """
        connection = self._session.connection()
        self.metadata.fence(connection, self.number)
        committed = self.metadata.is_recorded(connection, self.number, batch.ordinal)
        connection.rollback()
        return committed

    def _transaction(self, batch: Batch) -> None:
        reach(CrashPoint.SINK_BEFORE_TRANSACTION)
        connection = self._session.connection()
        self.metadata.fence(connection, self.number)
        for number, statement in enumerate(batch.work.statements(batch.style)):
            if number:
                reach(CrashPoint.SINK_MID_TRANSACTION)
            execute_written(connection, statement)
            self.counts.statements += 1
        reach(CrashPoint.SINK_BEFORE_RECORD)
        events = Encoded(batch.first, batch.last, batch.work.record())
        self.metadata.record(connection, (self.number, batch.ordinal), batch.epoch, events)
        reach(CrashPoint.SINK_BEFORE_COMMIT)
        connection.commit()
        reach(CrashPoint.SINK_AFTER_COMMIT)

    def _explained(self, error: SinkError, batch: Batch) -> SinkError:
        """The error with its row, found by executing the changes one by one, without committing."""
        try:
            connection = self._session.connection()  # another one: the failed one may not be in strict mode
            for one in batch.work.singly(batch.style):
                refused = _refusal(connection, one)
                if refused is not None:
                    return _placed(refused, position=str(batch.place(one.seq)), row=one.row)
        except (*_DRIVER_ERRORS, SinkError):
            log.debug("the failing row could not be determined", worker=self.number)
        finally:
            self._session.close()
        return _placed(error, position=str(batch.place(batch.first)))


def _refusal(connection: "Connection[Any]", one: Single) -> SinkError | None:
    """Why the target refuses a statement; None: it has executed it. Raises transient errors of the driver."""
    try:
        execute_written(connection, one.statement)
    except SinkError as error:
        return error
    except _DRIVER_ERRORS as error:
        if is_retryable(error):
            raise
        return translated(error, one.table, quotes_rows=True)
    return None


def _placed(error: SinkError, **place: Any) -> SinkError:
    return SinkError(error.message, hint=error.hint, **{**error.context, **place})


def execute_written(connection: "Connection[Any]", statement: str) -> None:
    """Execute a statement of the merger. Raises as `execute_under_protest`."""
    protests = statement.count(NAMELESS)
    if protests:
        execute_under_protest(connection, statement, protests)
    else:
        execute(connection, statement)
