"""The central map of checkpoint snapshots: which workers have reached each snapshot's mark.

A snapshot is ready when all workers have reached its mark: everything before it has then been executed. The newest
ready one is flushed, older ones are purged with it.
"""

import threading
import time
from dataclasses import dataclass
from typing import Generic, TypeVar

from dmdelta.logging import get_logger
from dmdelta.sink.metrics import SpanCounts

log = get_logger(__name__)
At = TypeVar("At")


@dataclass(frozen=True, slots=True)
class Ready(Generic[At]):
    """A snapshot whose mark every worker has reached.

    Attributes:
        pushed: when it was pushed (`time.monotonic`).
        seconds: the time from then until the last worker reached it.
    """

    id: int
    at: At
    pushed: float
    seconds: float


class Snapshots(Generic[At]):
    """Snapshots by increasing id. Thread-safe.

    Attributes:
        spans: the snapshots that became ready, with the time since each was pushed.
    """

    def __init__(self, workers: int, source_id: str = "") -> None:
        self.source_id = source_id
        self.spans = SpanCounts()
        self._workers = workers
        self._lock = threading.Condition()
        self._received: dict[int, dict[int, bool]] = {}
        self._at: dict[int, tuple[At, float]] = {}
        self._ready: Ready[At] | None = None
        self._pushed: At | None = None

    @property
    def received(self) -> dict[int, dict[int, bool]]:
        """Snapshot id → worker → received, of snapshots that are not flushed yet."""
        with self._lock:
            return {number: dict(workers) for number, workers in self._received.items()}

    @property
    def newest_ready(self) -> Ready[At] | None:
        with self._lock:
            return self._ready

    @property
    def newest_pushed(self) -> At | None:
        with self._lock:
            return self._pushed

    def push(self, number: int, at: At) -> None:
        """Register a snapshot whose mark is pushed to every worker's queue now."""
        with self._lock:
            self._received[number] = dict.fromkeys(range(self._workers), False)
            self._at[number] = at, time.monotonic()
            self._pushed = at
        log.debug("sink snapshot pushed", source=self.source_id, snapshot=number, position=str(at))

    def receive(self, number: int, worker: int) -> bool:
        """A worker has executed everything before the mark; True if it was the last worker."""
        with self._lock:
            workers = self._received.get(number)
            if workers is None:  # a newer one was flushed
                return False
            workers[worker] = True
            if not all(workers.values()):
                return False
            ready = self._now_ready(number)
            self._lock.notify_all()
        log.debug(
            "sink snapshot ready",
            source=self.source_id,
            snapshot=number,
            position=str(ready.at),
            seconds=round(ready.seconds, 3),
        )
        return True

    def _now_ready(self, number: int) -> Ready[At]:
        at, pushed = self._at[number]
        ready = Ready(number, at, pushed, time.monotonic() - pushed)
        self.spans = self.spans.plus(ready.seconds)
        if self._ready is None or self._ready.id < number:
            self._ready = ready
        return ready

    def purge(self, flushed: int) -> list[int]:
        """Forget the flushed snapshot and all older ones; returns their ids."""
        with self._lock:
            purged = [number for number in self._received if number <= flushed]
            for number in purged:
                del self._received[number], self._at[number]
            return purged

    def wait_for(self, number: int, seconds: float) -> bool:
        """Wait until a snapshot, or a newer one, is ready; False after a timeout."""
        with self._lock:
            return self._lock.wait_for(lambda: self._ready is not None and self._ready.id >= number, seconds)
