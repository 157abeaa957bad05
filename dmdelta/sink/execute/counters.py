"""Collects the counters of a running sink."""

from dmdelta.model.position import Position
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.metrics import SinkMetrics


def read_metrics(source_id: str, dispatcher: Dispatcher, flusher: Flusher) -> SinkMetrics:
    """The current counters."""
    snapshots, causality = dispatcher.snapshots, dispatcher.causality
    mark, counts = snapshots.newest_ready, causality.counts
    # A statement's checkpoint, or that of an earlier run, has no snapshot: what lies before it was executed.
    flushed = flusher.flushed.position if flusher.flushed else None
    ready = _newest(mark.at.position if mark and mark.at else None, flushed)
    pushed = snapshots.newest_pushed
    return SinkMetrics(
        source_id=source_id,
        pushed=_newest(pushed.position if pushed else None, ready),
        ready=ready,
        flushed=flushed,
        keys_added=counts.added,
        keys_purged=counts.purged,
        keys_reset=counts.reset,
        keys=counts.size,
        keys_waiting=causality.waiting(mark.id) if mark else 0,
        resets=counts.resets,
        queued=tuple(worker.queue.qsize() for worker in dispatcher.workers),
        workers=tuple(worker.counts for worker in dispatcher.workers),
        flushes=flusher.counts.flushes,
        flush_seconds=flusher.counts.seconds,
        ready_spans=snapshots.spans,
        flushed_spans=flusher.counts.spans,
    )


def _newest(*positions: Position | None) -> Position | None:
    return max((position for position in positions if position is not None), default=None)
