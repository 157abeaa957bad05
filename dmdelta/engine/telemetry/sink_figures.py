"""The metrics of the sinks: pure, from their counters."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric, SummaryMetricFamily

from dmdelta.engine.telemetry.counters import Labels
from dmdelta.engine.telemetry.families import Figure, families, family
from dmdelta.model.position import Position
from dmdelta.sink.metrics import SinkMetrics

_UNTIL = ("source", "until")
_OF_SINK = (
    Figure("sink_causality_keys", "Keys in causality's relation map.", lambda s: s.keys),
    Figure(
        "sink_causality_keys_waiting",
        "Keys in causality whose changes have been executed: the next purge removes them.",
        lambda s: s.keys_waiting,
    ),
    Figure("sink_causality_keys_added", "Keys added to causality.", lambda s: s.keys_added, grows=True),
    Figure(
        "sink_causality_keys_purged",
        "Keys removed from causality because their changes had been executed.",
        lambda s: s.keys_purged,
        grows=True,
    ),
    Figure("sink_causality_keys_reset", "Keys removed from causality by resets.", lambda s: s.keys_reset, grows=True),
    Figure("sink_causality_resets", "How often all queues were drained.", lambda s: s.resets, grows=True),
    Figure("sink_flushes", "Checkpoints written to the target.", lambda s: s.flushes, grows=True),
    Figure("sink_flush_seconds", "Duration of the latest checkpoint.", lambda s: s.flush_seconds),
)
_OF_WORKER = (
    Figure("sink_rows", "Row changes executed, after compaction.", lambda w: w.rows, grows=True),
    Figure("sink_statements", "Statements executed.", lambda w: w.statements, grows=True),
    Figure("sink_retries", "Transactions that were retried.", lambda w: w.retries, grows=True),
)
_OF_QUEUE = (Figure("sink_queue_batches", "Batches waiting for a worker.", float),)


def sink_figures(sinks: Mapping[str, SinkMetrics]) -> Iterator[Metric]:
    """The metrics of the sinks, by source."""
    workers = {(s, str(number)): worker for s, sink in sinks.items() for number, worker in enumerate(sink.workers)}
    queues = {(s, str(number)): waiting for s, sink in sinks.items() for number, waiting in enumerate(sink.queued)}
    yield from families(_OF_SINK, ("source",), {(source,): sink for source, sink in sinks.items()})
    yield from _spans(sinks)
    yield from families(_OF_WORKER, ("source", "worker"), workers)
    yield from families(_OF_QUEUE, ("source", "worker"), queues)


def _spans(sinks: Mapping[str, SinkMetrics]) -> Iterator[Metric]:
    """How far, and how long, a sink's snapshots are from being pushed until they are ready and flushed."""
    apart: dict[Labels, float] = {}
    spent = SummaryMetricFamily(
        "dmdelta_sink_span_seconds",
        "Time of the sink's checkpoint snapshots from being pushed to the queues until all workers have reached them "
        "(`ready`), and until they are in the target (`flushed`).",
        labels=_UNTIL,
    )
    for source, sink in sinks.items():
        for until, spans in (("ready", sink.ready_spans), ("flushed", sink.flushed_spans)):
            spent.add_metric((source, until), count_value=spans.times, sum_value=spans.seconds)
        for until, place in (("ready", sink.ready), ("flushed", sink.flushed)):
            if sink.pushed is not None and place is not None and _file(place) == _file(sink.pushed):
                apart[source, until] = sink.pushed.offset - place.offset
    yield spent
    yield family(
        "sink_span_bytes",
        "Bytes of log from the newest snapshot that is ready, or flushed, to the newest that was pushed, in one file.",
        _UNTIL,
        apart,
    )


def _file(position: Position) -> tuple[int, str]:
    return position.epoch, position.binlog_file
