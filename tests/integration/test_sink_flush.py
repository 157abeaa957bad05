"""A sink on a real server, without Spark: when either flush writes the checkpoint, and the metrics of the run."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.rules.routes import Route
from dmdelta.sink.change import Act, Change
from dmdelta.sink.read.change_reader import TableChanges
from dmdelta.sink.read.slices import Cut, Survey
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.startup import flushed_position, open_sink
from tests.support.logged import logged
from tests.support.sharding import wait_until
from tests.support.sinking import target_of

SOON, NEVER = 0.01, 3600.0
SCHEMA = TableSchema("d", "t", (Column("id", "int", nullable=False),), ("id",))


def at(offset):
    return Position(1, "binlog.000001", offset)


@dataclass(frozen=True)
class Inserts(TableChanges):
    """Inserts of a slice: their keys are the offsets of the log."""

    offsets: range = range(0)

    def changes(self):
        for offset in self.offsets:
            keys, events = (f"{offset}.t",), ((at(offset).seq, 0),)
            yield at(offset).seq, Change(Act.INSERT, str(offset), None, f"({offset})", None, keys, events)


class Run:
    """A running sink whose log has an insert at every offset, and a slice every 100 offsets."""

    def __init__(self, server, **settings):
        self.server, self.database = server, server.fresh_database("flush")
        server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=self.database)
        self.settings = SinkSettings(target_of(server), f"dm_{self.database}", workers=3, batch=10, **settings)
        self.open()

    def open(self):
        """Open the sink, again after its end: as a process does that retries."""
        source = SourceContext(Lakehouse(root="none"), "t", "s1", "run", "mysql", NO_RULES)
        self.sink = sink = open_sink(None, source, self.settings)
        self.plan = self.plan_of("t")
        sink.reader = SimpleNamespace(
            read=lambda part: [[Inserts(self.plan, None, offsets=range(part.begin.offset, part.end.offset))]],
            log=SimpleNamespace(survey=self.survey),
        )

    def plan_of(self, table):
        return self.sink.tables.plan(("d", table), 1, SCHEMA, Route(self.database, table))

    def survey(self, begin, end):
        return Survey(begin, end, (), [Cut(at(n), True) for n in range(begin.offset + 100, end.offset, 100)], ())

    def apply(self, begin, end):
        assert self.sink.apply(at(begin), at(end), lambda: False)

    def stored(self):
        return flushed_position(self.sink.flusher.server, self.sink.flusher.metadata)

    def count(self):
        return self.server.query("SELECT count(*) FROM t", self.database)[0][0]


@pytest.fixture(params=["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)])
def opened(request):
    runs = []

    def make(**settings):
        runs.append(Run(request.getfixturevalue(request.param), **settings))
        return runs[-1]

    yield make
    for run in runs:
        assert run.sink.end(orderly=True)
        assert not any(thread and thread.is_alive() for thread in (run.sink.purger._thread, run.sink.flusher._thread))


def test_a_synchronous_flush_after_every_slice(opened):
    """When `apply` returns, rows and checkpoint are at the end of the last slice: no thread writes it later."""
    run = opened(synchronous=True, flush_interval=0.0)
    run.apply(100, 500)
    assert run.sink.flusher._thread is None
    assert (run.stored(), run.count()) == (at(500), 400)
    metrics = run.sink.metrics()
    assert (metrics.flushes, metrics.flushed_spans.times) == (4, 4)
    assert sum(worker.rows for worker in metrics.workers) == 400
    assert (metrics.pushed, metrics.ready, metrics.flushed) == (at(500), at(500), at(500))
    assert (metrics.keys_added, metrics.keys) == (400, 0)


def test_the_interval_of_a_synchronous_sink_is_changed(opened):
    """Nothing is written within the long interval; with a short one, the next slice or an idle source is flushed."""
    run = opened(synchronous=True, flush_interval=NEVER)
    run.apply(100, 300)
    assert run.stored() is None
    run.sink.flusher.interval = 0.0
    run.sink.flush_if_due()
    assert (run.stored(), run.count()) == (at(300), 200)
    run.apply(300, 400)
    assert (run.stored(), run.count()) == (at(400), 300)


def test_the_interval_of_an_asynchronous_sink_is_changed(opened):
    """The flusher's thread follows the new interval while it waits for the old one."""
    run = opened(synchronous=False, flush_interval=NEVER)
    run.apply(100, 300)
    wait_until(lambda: run.count() == 200, 60)
    assert run.stored() is None
    run.sink.flusher.interval = SOON
    wait_until(lambda: run.stored() == at(300), 60)
    run.apply(300, 400)
    wait_until(lambda: run.stored() == at(400), 60)
    assert run.sink.metrics().resets == 0


def test_keys_are_purged_without_a_further_change(opened):
    """An idle sink, asynchronous and without conflicts: the purge's thread empties causality."""
    run = opened(flush_interval=NEVER)
    run.apply(100, 300)
    wait_until(lambda: run.sink.metrics().keys_purged == 200, 60)
    metrics = run.sink.metrics()
    assert (metrics.keys, metrics.keys_waiting, metrics.keys_added, metrics.keys_reset) == (0, 0, 200, 0)


def test_a_key_that_only_the_target_lacks_is_logged(opened):
    """With the first change of the table: its name, the consequence and the next step; not for tables with a key."""
    run = opened()
    run.server.execute("CREATE TABLE bare (id INT)", database=run.database)
    with logged("dmdelta.sink.target") as told:
        run.plan_of("t")
        run.plan_of("bare")
        run.plan_of("bare")
    run.apply(100, 200)
    (warning,) = [(message, fields) for level, message, fields in told if level == "WARNING"]
    assert "may duplicate" in warning[0]
    assert warning[1] == {
        "table": f"`{run.database}`.`bare`",
        "fix": "ALTER TABLE … ADD PRIMARY KEY in the target, as the source has",
    }


def test_a_sink_that_is_opened_again_in_the_same_process(opened):
    """The first one left records behind, and no checkpoint: the second one's transactions are not taken for them."""
    run = opened(synchronous=False, flush_interval=NEVER)
    run.apply(100, 300)
    wait_until(lambda: run.count() == 200, 60)
    run.sink.cut_off()
    assert not run.sink.end(orderly=False)
    assert run.stored() is None
    run.open()
    run.apply(300, 500)
    wait_until(lambda: run.count() == 400, 60)
    records = f"SELECT count(DISTINCT run) FROM {run.settings.metadata}.t_sink_executed WHERE worker >= 0"
    assert run.server.query(records) == ((2,),)
