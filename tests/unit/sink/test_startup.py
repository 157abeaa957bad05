"""The start of a sink without Spark and without a server: its threads, its identity, and its end by another thread."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import LakehouseError, SinkError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES
from dmdelta.sink import startup
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.plan.checkpoint import Checkpoint
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.startup import open_sink
from dmdelta.sink.target.metadata import Metadata, Stored
from tests.unit.sink.fake_target import SERVER

SOURCE = SourceContext(Lakehouse(root="none"), "t", "s1", "process", "mysql", NO_RULES)
SETTINGS = SinkSettings(SERVER, workers=3, structure_at=lambda _name, _at: None)
AT, HELD_AT = Position(1, "binlog.000001", 500), Position(1, "binlog.000001", 300)
CHECKPOINT = Checkpoint(AT, AT, tables={("d", "held"): HELD_AT, ("d", "ahead"): Position(1, "binlog.000001", 700)})


@pytest.fixture
def stored(monkeypatch):
    """What the target has; may be set before a sink is opened."""
    state = SimpleNamespace(stored=Stored(None, ExecutedEvents(), True, {}), runs=[])
    monkeypatch.setattr(startup, "session", no_session)
    monkeypatch.setattr(Metadata, "create", lambda self, connection: None)
    monkeypatch.setattr(Metadata, "take_over", lambda self, connection, workers: state.runs.append(self.run))
    monkeypatch.setattr(Metadata, "read", lambda self, connection: state.stored)
    before = set(threading.enumerate())
    yield state
    assert set(threading.enumerate()) == before


@contextmanager
def no_session(server):
    yield None


def shards(**methods):
    return SimpleNamespace(**methods)


def test_a_start_that_fails_leaves_no_thread(stored):
    """The shards' structures are read from bronze before the workers, the flusher and the purger start."""

    def fail(*_):
        raise LakehouseError("bronze cannot be read", hint="none")

    with pytest.raises(LakehouseError):
        open_sink(None, SOURCE, SETTINGS, shards=shards(open=fail))


def test_held_shards_need_a_shard_mode(stored):
    """The error names them, and no thread starts."""
    stored.stored = Stored(CHECKPOINT, ExecutedEvents(), True, {})
    with pytest.raises(SinkError, match=r"shard-mode is not set: d\.held"):
        open_sink(None, SOURCE, SETTINGS)


def test_the_state_of_the_earlier_run(stored):
    """Position, records and table points come from the target; the reloader reads everything."""
    executed, opened = ExecutedEvents(), []
    stored.stored = Stored(CHECKPOINT, executed, True, {("d", "t"): -1})
    coordination = shards(open=lambda *known: opened.append(known))
    sink = open_sink(None, SOURCE, SETTINGS, shards=coordination)
    try:
        assert opened == [(CHECKPOINT.tables, AT, {("d", "held"): HELD_AT})]
        assert (sink.position, sink.proven, sink.flusher.flushed) == (AT, True, CHECKPOINT)
        assert (sink.reader.executed, sink.reader.points) == (executed, CHECKPOINT.ahead())
        assert sink.ahead == max(CHECKPOINT.ahead().values())
        assert sink.reader.held is sink.shards.held
        assert sink.reloader.done == {("d", "t"): -1}
        assert sink.statements.structure_at is SETTINGS.structure_at
        everything = sink.reloader.reader
        assert (len(everything.executed), everything.points, everything.held) == (0, {}, {})
        assert [worker.number for worker in sink.dispatcher.workers] == [0, 1, 2]
    finally:
        sink.cut_off()
        sink.flusher.flushed = None
        sink.position = None
        sink.end(orderly=False)


def test_each_sink_of_a_process_is_a_run_of_its_own(stored):
    """One that an earlier attempt has left behind does not pass for the owner of the target."""
    for _ in range(2):
        sink = open_sink(None, SOURCE, SETTINGS)
        assert sink.flusher.metadata.run == sink.tables.metadata.run == sink.reloader.metadata.run
        assert {worker.metadata.run for worker in sink.dispatcher.workers} == {stored.runs[-1]}
        sink.end(orderly=True)
    first, second = stored.runs
    assert first != second
    assert first.startswith("process-")
    assert len(f"{'0' * 32}{first.removeprefix('process')}") <= 64, "the column of the owner"


def test_all_sessions_are_cut_off(stored):
    """Those of the workers, the flusher, the statements and the reload."""
    sink = open_sink(None, SOURCE, SETTINGS)
    sink.cut_off()
    owners = (*sink.dispatcher.workers, sink.flusher, sink.tables, sink.reloader)
    assert [owner._session._is_cut_off for owner in owners] == [True] * 6
    sink.end(orderly=True)
