"""The status that a running task builds from memory: real points and table states, without Spark."""

import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.checkpoint import Point, Points, RestartPlan, TablePoint
from dmdelta.engine.apply.table_state import Phase, TableStates
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.state import ReportedState, State
from dmdelta.engine.run.live_status import RunningSources, live_status
from dmdelta.engine.run.pipeline import stats_of
from dmdelta.engine.telemetry.counters import TableLoad
from dmdelta.engine.telemetry.observations import Observations
from dmdelta.engine.telemetry.task_status import Attention, Mode
from dmdelta.errors import TargetUnavailable, UnsupportedSchemaChange
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.source.relay.relay_task import StatusFile

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=timezone.utc)
RUNNING = ReportedState(State.RUNNING, NOW)


def at(offset):
    return Position(1, "binlog.000001", offset)


class Source:
    """The parts of a pipeline that its status reads."""

    def __init__(self, folder):
        folder.mkdir()
        self.relay = StatusFile(folder)
        self.relay.update(
            state="streaming",
            epoch=1,
            binlog_file="binlog.000001",
            offset=900,
            server_file="binlog.000001",
            server_offset=1000,
        )
        self.relay.write()
        self.points, self.states = Points("s1"), TableStates()
        self.observations = Observations()
        self.rows = []
        tables = SimpleNamespace(points=self.points, requests=SimpleNamespace(states=self.states))
        self.pipeline = SimpleNamespace(
            source_id="s1",
            stop=StopRequest(),
            has_ended=False,
            running_stages=["land", "apply"],
            relaying=SimpleNamespace(
                is_running=True,
                folder=folder,
                rules=SimpleNamespace(wanted=lambda schema, table: (schema, table) != ("other", "t")),
            ),
            landing=SimpleNamespace(reached=at(800), segments=[Segment("", "s1", 1, "binlog.000001", 4, 900)]),
            applying=SimpleNamespace(
                scheduler=SimpleNamespace(tables=tables, states=self.states, in_flight=[("d", "a")]),
                context=SimpleNamespace(memory=BatchMemory()),
            ),
            flusher=SimpleNamespace(flushed=at(100)),
            store=SimpleNamespace(rows=self.rows),
            sinking=None,
            validator=None,
            ad_hoc=None,
        )

    def applied(self, name, offset):
        self.points.applied(TablePoint("d", name, Point(at(offset)), 7))

    def status(self, loads=None, freshness=10.0, reported=RUNNING):
        running = RunningSources([self.pipeline], self.observations, loads or {}, freshness)
        return live_status("t", reported, running)

    def tables(self, **options):
        return {table.table: table for table in self.status(**options).tables}


@pytest.fixture
def source(tmp_path):
    source = Source(tmp_path / "s1")
    source.points.hand_over(Point(at(500)), [("d", "a"), ("d", "b")])
    source.applied("a", 500)
    source.applied("b", 500)
    return source


def test_the_stages_their_lag_and_the_rate(source):
    """The lag in bytes is that of the segments and of the server after them."""
    source.observations.see([stats_of(source.pipeline)], time.monotonic() - 10, {"s1": 0})
    source.observations.see([stats_of(source.pipeline)], time.monotonic(), {"s1": 50})
    status = source.status()
    (found,) = status.sources
    assert (status.state, status.state_at, status.error) == ("running", NOW, None)
    assert (found.relay, found.server_at) == ("streaming", "binlog.000001:1000")
    assert (found.relayed_to, found.landed_to) == (str(at(900)), str(at(800)))
    assert (found.applied_to, found.flushed_to) == (str(at(500)), str(at(100)))
    assert found.lag_bytes == 400 + 100
    assert found.lag_seconds == pytest.approx(10, abs=5)
    assert found.rows_per_second == pytest.approx(5, rel=0.1)
    assert (found.mode, found.safe_until, found.safe_tables) == (Mode.NORMAL, None, 0)
    assert {name: (t.applied_to, t.delta_version, t.attention) for name, t in source.tables().items()} == {
        "d.a": (str(at(500)), 7, None),
        "d.b": (str(at(500)), 7, None),
    }


def test_safe_mode_ends_at_the_farthest_limit(source):
    """The limit of the tables whose last range was applied in safe mode, for any reason."""
    for name, limit in (("a", 600), ("b", 700)):
        state = source.states.of(("d", name))
        state.is_safe, state.safe_until = True, at(limit)
    source.states.of(("d", "b")).plan = RestartPlan(at(4), "", safe_until=at(750))
    source.states.of(("d", "c")).safe_until = at(999)  # its last range was not applied in safe mode
    (found,) = source.status().sources
    assert (found.mode, found.safe_until, found.safe_tables) == (Mode.SAFE, str(at(750)), 2)
    assert source.tables()["d.a"].mode is Mode.SAFE
    assert source.tables()["d.c"].mode is Mode.NORMAL


def test_a_stopped_table_has_its_reason_position_and_hint(source):
    """The task's status shows them, too, and the task continues."""
    error = UnsupportedSchemaChange("cannot follow", hint="dmdelta binlog skip", position=at(500))
    source.states.of(("d", "a")).move(Phase.STOPPED, error=error)
    found = source.tables()["d.a"]
    assert (found.attention, found.phase) == (Attention.STOPPED, "stopped")
    assert (found.reason, found.hint) == (f"cannot follow (position={at(500)})", "dmdelta binlog skip")
    status = source.status()
    assert (status.state, status.error, status.hint) == ("running", found.reason, found.hint)


def test_a_shard_that_waits_shows_its_statement(source):
    """A shard that waits for a structure without a statement shows that."""
    for name, text in (("a", "ALTER TABLE a ADD n INT"), ("b", "")):
        source.states.of(("d", name)).move(Phase.WAITING, waits=SimpleNamespace(text=text))
    tables = source.tables()
    assert [tables[name].attention for name in ("d.a", "d.b")] == [Attention.WAITING] * 2
    assert tables["d.a"].reason == "ALTER TABLE a ADD n INT"
    assert tables["d.b"].reason == "a change of its structure"


def test_a_table_that_is_read_shows_its_progress(source):
    """The progress is shown until all chunks have landed; a table of another source is not listed."""
    loads = {
        "d.a": TableLoad(3, 10, 30, 100, 5.0, 14.0),
        "d.new": TableLoad(0, 2, 0, 20),
        "d.b": TableLoad(5, 5, 50, 50, 5.0, 0.0),
        "other.t": TableLoad(1, 5, 10, 50),
    }
    tables = source.tables(loads=loads)
    assert sorted(tables) == ["d.a", "d.b", "d.new"]
    assert (tables["d.a"].attention, tables["d.a"].snapshot.seconds_left) == (Attention.SNAPSHOT, 14.0)
    assert (tables["d.new"].applied_to, tables["d.new"].snapshot.all_chunks) == (None, 2)
    assert (tables["d.b"].attention, tables["d.b"].snapshot) == (None, None)


def test_a_table_that_delays_the_checkpoint_is_late(source):
    """It is late once it may lack changes older than three times the target freshness and half a minute."""
    source.observations.see([stats_of(source.pipeline)], time.monotonic() - 100)
    source.points.hand_over(Point(at(800)), [("d", "a"), ("d", "b")])
    source.applied("a", 800)
    tables = source.tables()
    assert (tables["d.a"].attention, tables["d.a"].lag_seconds) == (None, None)
    assert tables["d.b"].attention is Attention.LATE
    assert tables["d.b"].lag_seconds == pytest.approx(100, abs=10)
    assert source.tables(freshness=60.0)["d.b"].attention is None


def test_the_last_flush_is_shown(source):
    """It equals the row in the checkpoint table."""
    common = {"updated_at": NOW, "reason": "interval", "cp_schema": "", "cp_table": "", "is_global": True}
    place = {"exit_point_epoch": 1, "exit_point_binlog_name": "binlog.000001", "exit_point_binlog_pos": 640}
    later = {**common, "is_global": False, "cp_schema": "d", "cp_table": "a", "updated_at": NOW + timedelta(seconds=9)}
    source.rows[:] = [{**common, **place}, later]
    (found,) = source.status().sources
    assert (found.flushed_at, found.flushed_because, found.exit_point) == (NOW, "interval", str(at(640)))
    assert source.tables()["d.a"].flushed_at == NOW + timedelta(seconds=9)
    source.rows[:] = [{**common, **dict.fromkeys(place)}]
    assert source.status().sources[0].exit_point is None


def test_a_stop_shows_what_it_waits_for(source):
    """Nothing before and after the stop; during it, what is still running."""
    pipeline = source.pipeline
    assert source.status().sources[0].stop_waits_for == ()
    pipeline.stop.request()
    pipeline.sinking = SimpleNamespace(finished=False, failure=None, trouble=None, metrics=None, lacking=())
    waits_for = source.status().sources[0].stop_waits_for
    assert waits_for == ("landing", "applying d.a", "relay", "sink", "checkpoint")
    pipeline.running_stages, pipeline.relaying.is_running, pipeline.sinking = ["maintenance"], False, None
    assert source.status().sources[0].stop_waits_for == ("maintenance", "checkpoint")
    pipeline.has_ended = True
    assert source.status().sources[0].stop_waits_for == ()


def test_a_sink_whose_target_has_not_answered(source):
    """Its error is shown, and its lag is measured from the first observation of the log that has landed."""
    error = TargetUnavailable("no answer", hint="none")
    source.pipeline.sinking = SimpleNamespace(finished=False, failure=None, trouble=error, metrics=None, lacking=())
    source.observations.see([stats_of(source.pipeline)], 0.0)
    (stats,), lags = source.observations.newest()
    assert lags["s1"].lag(stats.positions["sunk"], 400.0) == 400.0
    (found,) = source.status().sources
    assert (found.sunk_to, found.sink_error, found.sink_lag_bytes) == (None, "no answer", None)
    source.pipeline.landing.reached = None
    assert "sunk" not in stats_of(source.pipeline).positions
