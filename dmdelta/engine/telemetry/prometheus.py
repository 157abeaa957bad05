"""The names of a run's metrics, and how they are computed: pure, from counts and source states.

Names and labels follow https://prometheus.io/docs/practices/naming/: base units, `_total` for counters.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.control.state import State
from dmdelta.engine.telemetry.counters import Counts, Labels, RunCounters
from dmdelta.engine.telemetry.families import Figure, families, family
from dmdelta.engine.telemetry.lag import LagTracker
from dmdelta.engine.telemetry.observations import Observations
from dmdelta.engine.telemetry.sink_figures import sink_figures
from dmdelta.engine.telemetry.stats import SourceStats
from dmdelta.engine.telemetry.status_server import StatusSite, serving_site
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.model.position import file_number

_STAGE = ("source", "stage")


_OF_SOURCE = (
    Figure("relay_streams", "1 if the relay is connected, or has caught up as requested.", lambda m: m.relay_streams),
    Figure("relay_retries", "Consecutive failed attempts of the relay.", lambda m: m.relay_retries),
    Figure("relay_free_bytes", "Free bytes of the disk that holds the segments.", lambda m: m.relay_free_bytes),
    Figure("relay_bytes", "Bytes of the log in segments, landed or not.", lambda m: m.relay_bytes),
    Figure("safe_mode_tables", "Tables whose last range was applied in safe mode.", lambda m: m.safe_tables),
    Figure("tables_stopped", "Tables that are stopped because silver cannot follow them.", lambda m: m.stopped),
    Figure("shards_waiting", "Shards that wait for others of their merged table.", lambda m: m.waiting),
    Figure(
        "batch_memory_bytes", "Bytes of landed rows in memory that silver has not applied.", lambda m: m.memory_bytes
    ),
    Figure("sink_stopped", "1 if the sink has stopped on an error.", lambda m: m.sink_stopped),
)
_OF_VALIDATOR = (
    Figure("validator_rows", "Rows that were compared and are equal.", lambda v: v.validated, grows=True),
    Figure("validator_pending_rows", "Rows that currently differ.", lambda v: v.pending),
    Figure("validator_stopped", "1 if the validator has stopped on an error.", lambda v: v.stopped),
)


def in_state(state: State) -> Metric:
    """The state of the task: 1 for one of the states."""
    values = {(each.value,): float(each is state) for each in State}
    return family("task_state", "1 for the current state of the task.", ("state",), values)


def retried(times: int) -> Metric:
    """How often the task retried automatically."""
    return family("task_retries", "Failures after which the task retried automatically.", (), {(): times}, grows=True)


def counted(counts: Counts) -> Iterator[Metric]:
    """The counters of a run."""
    table = ("source", "table")
    yield family(
        "rows_applied", "Row changes applied to silver, before compaction.", (*table, "op"), counts.rows, grows=True
    )
    yield family("silver_commits", "Commits of silver tables.", ("source", "step"), counts.commits, grows=True)
    yield family(
        "applied_ranges",
        "Ranges applied to a table, by where their rows were read from: memory or bronze.",
        ("source", "path"),
        counts.ranges,
        grows=True,
    )
    yield family("shard_key_clashes", "Keys that occur in several shards.", table, counts.clashes, grows=True)
    checked = (*table, "expectation")
    yield family("row_check_failures", "Rows that fail an expectation.", checked, counts.failures, grows=True)
    yield family("table_maintenance", "Maintenance actions on tables.", ("action",), counts.maintenance, grows=True)
    spent = SummaryMetricFamily(
        "dmdelta_batch_seconds",
        "Duration of landing a batch, a table's turn, applying a range to all tables, and writing a checkpoint.",
        labels=("source", "phase"),
    )
    for labels, (times, seconds) in counts.spent.items():
        spent.add_metric(labels, count_value=times, sum_value=seconds)
    yield spent


def placed(moments: Sequence[SourceStats], sightings: Mapping[str, LagTracker], now: float) -> Iterator[Metric]:
    """The positions of the stages, and their lag behind the server; `now` is of the lag tracker's clock."""
    at = {(moment.source_id, stage): place for moment in moments for stage, place in moment.positions.items()}
    files = {labels: file_number(place.binlog_file) for labels, place in at.items()}
    offsets = {labels: place.offset for labels, place in at.items()}
    late: dict[Labels, float] = {}
    files_behind: dict[Labels, float] = {}
    bytes_behind: dict[Labels, float] = {}
    for (source, stage), place in at.items():
        end = at.get((source, "server"))
        if end is None or stage == "server":
            continue
        late[source, stage] = sightings[source].lag(place, now)
        if place.epoch == end.epoch:  # files of another epoch belong to another log
            behind = file_number(end.binlog_file) - file_number(place.binlog_file)
            files_behind[source, stage] = max(0, behind)
            if not behind:
                bytes_behind[source, stage] = max(0, end.offset - place.offset)
    yield family("position_file", "Number of the binlog file at a stage's position.", _STAGE, files)
    yield family("position_bytes", "Offset in the binlog file at a stage's position.", _STAGE, offsets)
    yield family("lag_seconds", "Age of the oldest log that a stage has not reached, in seconds.", _STAGE, late)
    yield family("lag_files", "Binlog files between a stage and the server's newest.", _STAGE, files_behind)
    yield family("lag_bytes", "Bytes between a stage and the server's end, within one file.", _STAGE, bytes_behind)
    waiting = {(moment.source_id, stage): size for moment in moments for stage, size in moment.waiting_bytes.items()}
    yield family("relay_waiting_bytes", "Bytes of segments that a stage has not reached.", _STAGE, waiting)


def source_metrics(moments: Sequence[SourceStats]) -> Iterator[Metric]:
    """The states of sources, and of their sinks and validators."""
    validators = {moment.source_id: moment.validator for moment in moments if moment.validator is not None}
    errors = {(s, state.value): float(n) for s, each in validators.items() for state, n in each.errors.items()}
    yield from families(_OF_SOURCE, ("source",), {(moment.source_id,): moment for moment in moments})
    yield from sink_figures({moment.source_id: moment.sink for moment in moments if moment.sink is not None})
    yield from families(_OF_VALIDATOR, ("source",), {(source,): each for source, each in validators.items()})
    yield family("validator_errors", "Rows that differed for too long, by state.", ("source", "state"), errors)


def metrics_page() -> str:
    """docs/metrics.md, in Markdown."""
    nothing = Counts({}, {}, {}, {}, {})
    figures = [in_state(State.RUNNING), retried(0), *counted(nothing), *placed((), {}, 0.0), *source_metrics(())]
    lines = [
        "# Metrics",
        "",
        "Generated by `python -m dmdelta.engine.telemetry.prometheus`; do not edit.",
        "",
        "While it runs, `dmdelta run` serves `/metrics` at the address in the spec's `metrics` (`metrics: {}`:",
        "`127.0.0.1:9262`), with these and the process's own, such as `process_resident_memory_bytes`.",
        "A stage is `server` (the source's end), `relayed`, `landed`, `applied`, `flushed` (the checkpoint),",
        "`sink_pushed` (handed to the sink's workers), `sink_ready` (executed by all of them), `sunk` (the sink's",
        "checkpoint in the target) or `validated`.",
        "",
        "| metric | type | labels | meaning |",
        "| --- | --- | --- | --- |",
        *(_line(figure) for figure in figures),
    ]
    return "\n".join(lines) + "\n"


def _line(figure: Metric) -> str:
    name = f"{figure.name}_total" if figure.type == "counter" else figure.name
    labels = vars(figure)["_labelnames"]  # the only way to read them from a family without samples
    return f"| `{name}` | {figure.type} | {', '.join(labels)} | {figure.documentation} |"


class RunMetrics(Collector):
    """A run's metrics: its counters at the time of the request, its sources as of the last poll."""

    def __init__(self, counters: RunCounters, observations: Observations) -> None:
        self._tally = counters
        self._observations = observations
        self._state = State.RUNNING
        self._retries = 0

    def publish(self, state: State) -> None:
        """Set the state of the task."""
        self._state = state
        self._retries += state is State.RETRYING

    def collect(self) -> Iterator[Metric]:
        """The metrics of `/metrics`."""
        moments, sightings = self._observations.newest()
        yield in_state(self._state)
        yield retried(self._retries)
        yield from counted(self._tally.counts())
        yield from placed(moments, sightings, time.monotonic())
        yield from source_metrics(moments)


@contextmanager
def serving_metrics(
    config: MetricsConfig | None,
    counters: RunCounters,
    observations: Observations,
    status: Callable[[], TaskStatus],
    freshness: float,
) -> Iterator[RunMetrics | None]:
    """Serve `/metrics` and the status page until the block ends; None if the spec does not enable them.

    Args:
        status: returns the current status of the task.
        freshness: the target freshness, in seconds.

    Raises:
        ConfigError: the address is in use, or not one of this machine's.
    """
    if config is None:
        yield None
        return
    metrics = RunMetrics(counters, observations)
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    with serving_site(config, StatusSite(status, observations.history, freshness, registry)):
        yield metrics


if __name__ == "__main__":
    print(metrics_page(), end="")  # noqa: T201 - its output is the page
