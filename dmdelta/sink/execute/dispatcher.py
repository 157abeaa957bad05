"""Dispatches changes to queues: causality selects the worker, batches fill up, snapshot marks pass every queue."""

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.sink.change import Change, Shape
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.columnar_compactor import NetRows
from dmdelta.sink.execute.merger import Style, Work
from dmdelta.sink.execute.purger import purge_executed
from dmdelta.sink.execute.transaction import BatchWork, ChangeWork, RowWork
from dmdelta.sink.execute.worker import Batch, Mark, Worker
from dmdelta.sink.plan.checkpoint import PushedPoint

log = get_logger(__name__)
BATCH_CHARACTERS = 4 << 20
"""Size at which a batch of long rows is closed."""
POLL_SECONDS = 0.5
SETTLING_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Scope:
    """What all changes between two snapshot marks have in common.

    Attributes:
        first, last: the range of `seq` in which they take effect.
        place: maps a `seq` to its log position.
    """

    epoch: int
    first: int
    last: int
    style: Style
    place: Callable[[int], Position]


@dataclass(slots=True)
class Dispatcher:
    """Fills the workers' queues. Not thread-safe, except for `fail`.

    Attributes:
        batch: row changes per transaction.
    """

    workers: Sequence[Worker]
    causality: Causality
    snapshots: Snapshots[PushedPoint | None]
    batch: int
    failure: BaseException | None = None
    _filling: list[list[Work]] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _ordinals: list[int] = field(default_factory=list)
    _marks: int = 0
    _scope: Scope | None = None

    def begin(self, workers: Sequence[Worker]) -> None:
        """Start the workers."""
        self.workers = workers
        self._filling = [[] for _ in workers]
        self._sizes = [0 for _ in workers]
        self._ordinals = [0 for _ in workers]
        for worker in workers:
            worker.start()

    def fail(self, error: BaseException) -> None:
        """Record the failure of a worker or of the flusher."""
        self.failure = self.failure or error

    def check(self) -> None:
        """Raise the first failure."""
        if self.failure is not None:
            raise self.failure

    def enter(self, scope: Scope) -> None:
        """Set the scope of the changes that follow."""
        self._send_all()
        self._scope = scope

    def dispatch(self, shape: Shape, changes: Sequence[Change]) -> None:
        """Dispatch changes that must be executed in one transaction, in order; usually a single one."""
        keys: Sequence[str]
        if len(changes) == 1:
            keys = changes[0].keys
        else:
            keys = tuple(dict.fromkeys(key for change in changes for key in change.keys))
        worker = self.causality.add(keys)
        if worker is None:
            worker = self._resolve(keys)
        filling = self._filling[worker]
        size = self._sizes[worker]
        for change in changes:
            filling.append((shape, change))
            size += len(change.values or "")
        self._sizes[worker] = size
        if len(filling) >= self.batch or size > BATCH_CHARACTERS:
            self._send(worker)

    def dispatch_rows(self, shape: Shape, rows: NetRows) -> None:
        """Dispatch independent rows of one table in columnar form."""
        if rows.single:
            keys = cast("Sequence[str]", rows.keys)
            self._put_rows(shape, rows, 0, self.causality.place(keys))
            return
        begin, workers = 0, list[int]()
        for number, several in enumerate(rows.keys):
            worker = self.causality.add(several)
            if worker is None:
                self._put_rows(shape, rows, begin, workers)
                begin, workers = number, []
                worker = self._resolve(several)
            workers.append(worker)
        self._put_rows(shape, rows, begin, workers)

    def _put_rows(self, shape: Shape, rows: NetRows, begin: int, workers: Sequence[int]) -> None:
        """Send rows, starting at `begin`, to their workers."""
        scope = self._scope
        assert scope is not None, "rows need a scope"
        numbers = np.array(workers, np.int64)
        order = np.lexsort((rows.acts[begin : begin + len(numbers)], numbers))
        numbers, order = numbers[order], order + begin
        _, ends, data = (listed := rows.listed(order)).buffers()
        if not len(listed):
            return
        ends, texts = np.frombuffer(ends, np.int64)[: len(listed) + 1], memoryview(data)
        for number in np.unique(numbers):
            self._send(int(number))
            first, last = (int(np.searchsorted(numbers, number, side=side)) for side in ("left", "right"))
            while first < last:
                long = int(np.searchsorted(ends, ends[first] + BATCH_CHARACTERS, side="right")) - 1
                until = min(last, first + self.batch, max(first + 1, long))
                work = RowWork(shape, rows, order[first:until], texts, ends[first : until + 1])
                self._put_work(int(number), work, scope)
                first = until

    def push(self, at: PushedPoint | None) -> int:
        """Send a snapshot mark through all queues; `at`: what it certifies. Returns the mark's id."""
        self._send_all()
        self._marks += 1
        self.snapshots.push(self._marks, at)
        self.causality.rotate(self._marks)
        for worker in self.workers:
            self._put(worker, Mark(self._marks))
        return self._marks

    def drain(self, at: PushedPoint | None, seconds: float | None = None) -> bool:
        """Wait until everything dispatched has been executed; False after a timeout of `seconds`."""
        number = self.push(at)
        waited = 0.0
        while not self.snapshots.wait_for(number, POLL_SECONDS):
            self.check()
            waited += POLL_SECONDS
            if seconds is not None and waited >= seconds:
                return False
        forgotten = self.causality.reset()
        log.debug("causality reset", source=self.snapshots.source_id, snapshot=number, count=forgotten)
        reach(CrashPoint.SINK_DRAINED)
        return True

    def settle(self, seconds: float) -> bool:
        """After a failure: let the workers that have not failed execute what they have; False after a timeout."""
        deadline = time.monotonic() + seconds
        self._marks += 1
        self.snapshots.push(self._marks, self.snapshots.newest_pushed)
        for worker, work in zip(self.workers, self._filling, strict=True):
            if work and self._scope is not None:
                worker.give(self._batch(worker.number, ChangeWork(work), self._scope), deadline)
            worker.give(Mark(self._marks), deadline)
        self._filling = [[] for _ in self.workers]
        while not self._is_settled():
            if time.monotonic() >= deadline:
                return False
            time.sleep(SETTLING_SECONDS)
        return True

    def _is_settled(self) -> bool:
        received = self.snapshots.received.get(self._marks, {})
        return all(worker.broken or received.get(worker.number, True) for worker in self.workers)

    @property
    def unexecuted(self) -> set[str]:
        """The target's tables with changes that workers received but did not execute, after `end`."""
        return {table for worker in self.workers for table in worker.unexecuted}

    def _resolve(self, keys: Sequence[str]) -> int:
        """The worker for changes with conflicting keys: forget what has been executed by now, else drain all queues."""
        purge_executed(self.causality, self.snapshots)
        worker = self.causality.add(keys)
        if worker is None:
            self.drain(self.snapshots.newest_pushed)
            worker = self.causality.add(keys)
        assert worker is not None, "an empty relation map has no conflicts"
        return worker

    def _send_all(self) -> None:
        for number in range(len(self.workers)):
            self._send(number)

    def _send(self, number: int) -> None:
        work, scope = self._filling[number], self._scope
        if not work or scope is None:
            return
        self._filling[number], self._sizes[number] = [], 0
        self._put_work(number, ChangeWork(work), scope)

    def _put_work(self, number: int, work: BatchWork, scope: Scope) -> None:
        self._put(self.workers[number], self._batch(number, work, scope))

    def _batch(self, number: int, work: BatchWork, scope: Scope) -> Batch:
        self._ordinals[number] += 1
        return Batch(
            ordinal=self._ordinals[number],
            epoch=scope.epoch,
            work=work,
            style=scope.style,
            first=scope.first,
            last=scope.last,
            place=scope.place,
        )

    def _put(self, worker: Worker, message: Batch | Mark) -> None:
        """Wait for space in a queue; a worker that failed empties its own."""
        while True:
            self.check()
            try:
                worker.queue.put(message, timeout=POLL_SECONDS)
            except queue.Full:
                continue
            return

    def end(self, seconds: float) -> bool:
        """Stop the workers after their current batch; False if one does not end in time.

        The target rolls back that one's transaction, so that it does not block the next run.
        """
        for worker in self.workers:
            worker.stopping.set()
            worker.leave()
        deadline = time.monotonic() + seconds
        ended = [worker.join(max(0.0, deadline - time.monotonic())) for worker in self.workers]
        self.cut_off()
        return all(ended)

    def cut_off(self) -> None:
        """End the sessions of workers that do not end."""
        for worker in self.workers:
            worker.cut_off()
