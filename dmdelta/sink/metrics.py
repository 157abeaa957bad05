"""The sink's counters, as shown in status, logs and metrics."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class WorkerCounts:
    """One worker's counters. Written only by its own thread."""

    transactions: int = 0
    statements: int = 0
    rows: int = 0
    retries: int = 0


@dataclass(slots=True)
class FlushCounts:
    """The flusher's counters; `seconds` is the duration of the latest flush."""

    flushes: int = 0
    seconds: float = 0.0
    dropped_records: int = 0


@dataclass(frozen=True, slots=True)
class SinkMetrics:
    """A snapshot of one source's sink counters.

    Attributes:
        pushed, ready, flushed: positions of the newest checkpoint snapshot that was pushed to the queues, that all
            workers have reached, and that is in the target's checkpoint.
        keys_added, keys_purged, keys: of causality, since the start and now.
        resets: how often all queues were drained for a conflict, a statement or a stop.
        queued: waiting batches, by worker.
        workers: the counters of each worker.
        flush_seconds: duration of the latest flush.
        skipped: events that an earlier run had already executed.
    """

    source_id: str
    pushed: str | None = None
    ready: str | None = None
    flushed: str | None = None
    keys_added: int = 0
    keys_purged: int = 0
    keys: int = 0
    resets: int = 0
    queued: tuple[int, ...] = ()
    workers: tuple[WorkerCounts, ...] = ()
    flushes: int = 0
    flush_seconds: float = 0.0
    skipped: int = 0
    error: str | None = field(default=None)

    @property
    def rows(self) -> int:
        """Row changes executed, after compaction."""
        return sum(worker.rows for worker in self.workers)

    @property
    def statements(self) -> int:
        return sum(worker.statements for worker in self.workers)
