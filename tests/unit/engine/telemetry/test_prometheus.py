"""The metrics of a run, in Prometheus' format."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.control.state import State
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.engine.telemetry.lag import MOST, LagTracker
from dmdelta.engine.telemetry.observations import Observations
from dmdelta.engine.telemetry.prometheus import RunMetrics, metrics_page, serving_metrics
from dmdelta.engine.telemetry.stats import SourceStats, ValidatorFigures, bytes_beyond
from dmdelta.errors import ConfigError
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.quality.pending import ErrorState
from dmdelta.silver.apply.request import ApplyResult, RowsPath
from dmdelta.silver.rows.strategy import Step
from dmdelta.sink.metrics import SinkMetrics, SpanCounts, WorkerCounts


def at(offset, file="binlog.000002", epoch=1):
    return Position(epoch, file, offset)


def test_lag_is_the_age_of_the_log_that_a_stage_has_not_reached():
    """Not the age of the last row: a stage that has reached the end has no lag."""
    seen = LagTracker()
    assert seen.lag(None, 0.0) == 0.0
    for moment, end in ((10.0, 100), (20.0, 100), (30.0, 300)):
        seen.saw(at(end), moment)
    assert seen.lag(None, 40.0) == 30.0
    assert seen.lag(at(99), 40.0) == 30.0
    assert seen.lag(at(100), 40.0) == 10.0
    assert seen.lag(at(300), 40.0) == 0.0
    seen.forget(at(100))
    assert seen.lag(at(50), 40.0) == 10.0


@given(st.lists(st.integers(0, 1000), min_size=1), st.integers(0, 1000))
def test_lag_is_that_of_the_first_end_beyond_the_position(ends, reached):
    """Equal to a linear search over all observations."""
    seen = LagTracker()
    for moment, end in enumerate(ends):
        seen.saw(at(end), float(moment))
    first = next((moment for moment, end in enumerate(ends) if end > reached), None)
    assert seen.lag(at(reached), float(len(ends))) == (0.0 if first is None else float(len(ends) - first))


def test_observations_are_bounded():
    """The oldest relevant one is kept."""
    seen = LagTracker()
    for number in range(3 * MOST):
        seen.saw(at(number + 1), float(number))
    assert seen.lag(None, float(3 * MOST)) == 3 * MOST
    assert len(seen._seen) <= MOST


def test_the_exposed_metrics():
    """Counts by source, table and op; positions and lags by stage; the sink by worker."""
    counters = RunCounters(lambda _: None)
    result = ApplyResult(
        schema="shop",
        table="orders",
        end=at(80),
        rows={Op.INSERT: 3, Op.DELETE: 1},
        steps=(Step.APPEND,),
        commit=None,
        structure=None,
        clashes=2,
        path=RowsPath.MEMORY,
    )
    counters.applied("s1", result)
    counters.applied("s2", result)
    counters.applied("s2", replace(result, path=RowsPath.BRONZE))
    counters.applied("s2", replace(result, rows={}, path=None))
    with counters.spending("s1", "land"):
        pass
    sink = SinkMetrics("s1", workers=(WorkerCounts(5, 40), WorkerCounts(1, 2)), queued=(0, 7), keys=9)
    positions = {"server": at(500, "binlog.000003"), "landed": at(400, "binlog.000003"), "applied": at(80)}
    observations = Observations()
    metrics = RunMetrics(counters, observations)
    waiting = {"landed": 0, "applied": 420}
    moment = SourceStats("s1", positions, relay_streams=True, stopped=1, sink=sink)
    observations.see([replace(moment, relay_bytes=900, waiting_bytes=waiting, safe_tables=3, memory_bytes=4096)], 0.0)
    for state in (State.RETRYING, State.RUNNING, State.RETRYING):
        metrics.publish(state)
    registry = CollectorRegistry()
    registry.register(metrics)

    def value(name, **labels):
        return registry.get_sample_value(f"dmdelta_{name}", labels)

    assert value("rows_applied_total", source="s1", table="shop.orders", op="insert") == 3
    assert value("rows_applied_total", source="s2", table="shop.orders", op="delete") == 2
    assert value("applied_ranges_total", source="s1", path="memory") == 1
    assert [value("applied_ranges_total", source="s2", path=path) for path in ("memory", "bronze")] == [1, 1]
    assert value("batch_memory_bytes", source="s1") == 4096
    assert value("silver_commits_total", source="s1", step="append") == 1
    assert value("shard_key_clashes_total", source="s1", table="shop.orders") == 2
    assert value("batch_seconds_count", source="s1", phase="land") == 1
    assert value("position_file", source="s1", stage="applied") == 2
    assert value("lag_files", source="s1", stage="applied") == 1
    assert value("lag_bytes", source="s1", stage="applied") is None
    assert value("lag_bytes", source="s1", stage="landed") == 100
    assert value("lag_seconds", source="s1", stage="landed") > 0
    assert value("lag_seconds", source="s1", stage="server") is None
    assert value("tables_stopped", source="s1") == 1
    assert value("relay_streams", source="s1") == 1
    assert value("relay_bytes", source="s1") == 900
    assert value("relay_waiting_bytes", source="s1", stage="applied") == 420
    assert value("relay_waiting_bytes", source="s1", stage="landed") == 0
    assert value("safe_mode_tables", source="s1") == 3
    assert value("task_retries_total") == 2
    assert value("sink_rows_total", source="s1", worker="0") == 40
    assert value("sink_queue_batches", source="s1", worker="1") == 7
    assert counters.now().tables == {"shop.orders": 12}
    assert counters.now().clashes == {"shop.orders": 8}


def test_the_sinks_snapshots_and_keys():
    """Pushed, ready and flushed are stages; the spans between them; the keys of causality by outcome."""
    sink = SinkMetrics(
        "s1",
        pushed=at(400),
        ready=at(300),
        flushed=at(250),
        keys_added=20,
        keys_purged=7,
        keys_reset=4,
        keys=9,
        keys_waiting=2,
        resets=3,
        ready_spans=SpanCounts(5, 1.5),
        flushed_spans=SpanCounts(2, 60.0),
    )
    positions = {"server": at(500), "sink_pushed": sink.pushed, "sink_ready": sink.ready, "sunk": sink.flushed}
    elsewhere = replace(sink, flushed=at(250, "binlog.000001"), ready=None)
    observations = Observations()
    metrics = RunMetrics(RunCounters(lambda _: None), observations)
    observations.see([SourceStats("s1", positions, sink=sink), SourceStats("s2", sink=elsewhere)], 0.0)
    registry = CollectorRegistry()
    registry.register(metrics)

    def value(name, **labels):
        return registry.get_sample_value(f"dmdelta_{name}", labels)

    stages = ("sink_pushed", "sink_ready", "sunk")
    assert [value("position_bytes", source="s1", stage=stage) for stage in stages] == [400, 300, 250]
    assert [value("lag_bytes", source="s1", stage=stage) for stage in stages] == [100, 200, 250]
    assert [value("sink_span_bytes", source="s1", until=until) for until in ("ready", "flushed")] == [100, 150]
    assert [value("sink_span_bytes", source="s2", until=until) for until in ("ready", "flushed")] == [None, None]
    assert value("sink_span_seconds_count", source="s1", until="ready") == 5
    assert value("sink_span_seconds_sum", source="s1", until="flushed") == 60.0
    names = ("keys_added_total", "keys_purged_total", "keys_reset_total", "keys", "keys_waiting", "resets_total")
    assert [value(f"sink_causality_{name}", source="s1") for name in names] == [20, 7, 4, 9, 2, 3]


def test_waiting_bytes_are_counted_from_a_position():
    """Across files and epochs; in the segment that contains the position, only the bytes after it."""
    spans = (("binlog.000001", 4, 100), ("binlog.000001", 100, 250), ("binlog.000002", 4, 60))
    segments = [Segment("", "s1", 1, file, start, end) for file, start, end in spans]
    segments.append(Segment("", "s1", 2, "binlog.000001", 4, 14))
    places = (
        at(4, "binlog.000001"),
        at(200, "binlog.000001"),
        at(60),
        at(4, "binlog.000001", 2),
        at(14, "binlog.000001", 2),
    )
    assert [bytes_beyond(segments, place) for place in places] == [312, 116, 10, 10, 0]
    assert bytes_beyond([], at(4)) == 0


def test_a_source_without_stages_has_no_figures():
    """Before its stages start, nothing streams, waits or is stopped."""
    observations = Observations()
    observations.see([SourceStats("s1")], 0.0)
    registry = CollectorRegistry()
    registry.register(RunMetrics(RunCounters(lambda _: None), observations))
    figures = {
        sample.name: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.labels == {"source": "s1"}
    }
    assert {"dmdelta_relay_streams", "dmdelta_safe_mode_tables", "dmdelta_tables_stopped"} <= figures.keys()
    assert set(figures.values()) == {0.0}


def test_the_validators_metrics():
    """Rows, errors by state, and its position as a stage."""
    figures = ValidatorFigures(70, 3, {ErrorState.NEW: 2, ErrorState.IGNORED: 0}, stopped=True)
    positions = {"server": at(500), "validated": at(400)}
    observations = Observations()
    metrics = RunMetrics(RunCounters(lambda _: None), observations)
    observations.see([SourceStats("s1", positions, validator=figures), SourceStats("s2")], 0.0)
    registry = CollectorRegistry()
    registry.register(metrics)

    def value(name, **labels):
        return registry.get_sample_value(f"dmdelta_{name}", labels)

    assert value("validator_rows_total", source="s1") == 70
    assert value("validator_pending_rows", source="s1") == 3
    assert value("validator_errors", source="s1", state="new") == 2
    assert value("validator_errors", source="s1", state="ignored") == 0
    assert value("validator_stopped", source="s1") == 1
    assert value("validator_stopped", source="s2") is None
    assert value("lag_bytes", source="s1", stage="validated") == 100


def unknown_status():
    raise AssertionError


def test_an_address_in_use_is_reported():
    """A second run with the same port ends before it changes anything."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        serving = serving_metrics(
            MetricsConfig(port=port), RunCounters(lambda _: None), Observations(), unknown_status, 0.0
        )
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"), serving:
            pass


def test_by_default_only_this_machine_is_served():
    """At 127.0.0.1 and no other address: a wildcard socket would also answer at 127.0.0.2 and over IPv6."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serving_metrics(MetricsConfig(port=port), RunCounters(lambda _: None), Observations(), unknown_status, 0.0):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        for address in ("127.0.0.2", "::1"):
            with pytest.raises(OSError):
                socket.create_connection((address, port), timeout=5)


def test_the_page_is_current():
    """docs/metrics.md equals the generated page."""
    assert Path("docs/metrics.md").read_text(encoding="utf-8") == metrics_page()
