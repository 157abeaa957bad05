"""The sink's counters, as shown in status, logs and metrics."""

from dataclasses import dataclass, field

from dmdelta.model.position import Position


@dataclass(slots=True)
class WorkerCounts:
    """One worker's counters. Written only by its own thread."""

    statements: int = 0
    rows: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """How many checkpoint snapshots reached a state, and the total time since each was pushed, in seconds."""

    times: int = 0
    seconds: float = 0.0

    def plus(self, seconds: float) -> "SpanCounts":
        """These and one more."""
        return SpanCounts(self.times + 1, self.seconds + seconds)


@dataclass(slots=True)
class FlushCounts:
    """The flusher's counters.

    Attributes:
        flushes: checkpoints written.
        seconds: the duration of the latest one.
        spans: the snapshots that were flushed, with the time since each was pushed.
    """

    flushes: int = 0
    seconds: float = 0.0
    spans: SpanCounts = field(default_factory=SpanCounts)


@dataclass(frozen=True, slots=True)
class SinkMetrics:
    """A snapshot of one source's sink counters.

    Attributes:
        pushed, ready, flushed: positions of the newest checkpoint snapshot that was pushed to the queues, that all
            workers have reached, and that is in the target's checkpoint; `pushed` ≥ `ready` ≥ `flushed`.
        keys_added, keys_purged, keys_reset: of causality, since the start (`CausalityCounts`).
        keys, keys_waiting: in causality now, and those of them that wait for the next purge.
        resets: how often all queues were drained for a conflict, a statement or a stop.
        queued: waiting batches, by worker.
        workers: the counters of each worker.
        flush_seconds: duration of the latest flush.
        ready_spans, flushed_spans: the time of snapshots from being pushed until they were ready, and flushed.
    """

    source_id: str
    pushed: Position | None = None
    ready: Position | None = None
    flushed: Position | None = None
    keys_added: int = 0
    keys_purged: int = 0
    keys_reset: int = 0
    keys: int = 0
    keys_waiting: int = 0
    resets: int = 0
    queued: tuple[int, ...] = ()
    workers: tuple[WorkerCounts, ...] = ()
    flushes: int = 0
    flush_seconds: float = 0.0
    ready_spans: SpanCounts = field(default_factory=SpanCounts)
    flushed_spans: SpanCounts = field(default_factory=SpanCounts)
