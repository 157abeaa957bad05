"""The apply loop: it hands ranges over without waiting for tables, reports them in order, and ends when nothing is left."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.checkpoint import FlushReason, Points
from dmdelta.engine.apply import loop as module
from dmdelta.engine.apply.loop import ApplyingLoop
from dmdelta.engine.apply.progress import AppliedRange
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import LakehouseError
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.sharding import Coordination, Mode

SECONDS = 20.0


def landed(number, epoch=1):
    begin, end = (Position(epoch, "binlog.000001", 100 * offset) for offset in (number, number + 1))
    return LandedRange(number, begin, end, parse_gtid_set("", "mysql"))


@dataclass
class Scheduler:
    """Stands in for `TableScheduler`: ranges are applied when the test says so."""

    shards: Coordination = field(default_factory=Coordination)
    counters: RunCounters = field(default_factory=lambda: RunCounters(lambda _: None))
    handed: list = field(default_factory=list)
    applied: list = field(default_factory=list)
    is_idle: bool = True
    has_room: bool = True
    failure: Exception | None = None
    resumed: int = 0
    writes: bool = False

    @property
    def context(self):
        return SimpleNamespace(source_id="s", shards=self.shards, memory=BatchMemory())

    @property
    def tables(self):
        return SimpleNamespace(counters=self.counters, points=Points("s"))

    @contextmanager
    def writing(self, _stop):
        self.writes = True
        yield
        self.writes = False

    def check(self):
        if self.failure is not None:
            raise self.failure

    def hand_over(self, landed):
        self.handed.append(landed.batch)

    def take_applied(self):
        applied, self.applied = self.applied, []
        return applied

    def resume_released(self):
        self.resumed += 1

    def wait(self, seconds):
        threading.Event().wait(seconds)


class Run:
    """A loop in a thread."""

    def __init__(self, scheduler):
        self.scheduler, self.queue, self.applied, self.stop = scheduler, RangeQueue(), RangeQueue(), StopRequest()
        self.flushes = []
        self.loop = ApplyingLoop(scheduler, self.queue, self.flushes.append, self.applied)
        self.error = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            self.loop.run(self.stop)
        except LakehouseError as error:
            self.error = error

    def wait_for(self, holds):
        waiting = threading.Event()
        for _ in range(int(SECONDS / 0.01)):
            if holds():
                return
            waiting.wait(0.01)
        raise AssertionError(vars(self.scheduler))

    def drain(self):
        """Start, stop with time to drain, and hand over a range that lands meanwhile."""
        self.scheduler.is_idle = False
        self.thread.start()
        self.stop.request(drain=SECONDS)
        self.queue.append(landed(1))
        self.wait_for(lambda: self.scheduler.handed == [1])

    def end(self):
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    made = Run(Scheduler())
    yield made
    made.stop.request()
    made.thread.join(SECONDS)


def test_ranges_are_handed_over_while_tables_are_busy(run):
    """The loop ends only once they are idle, after it has reported what they applied."""
    run.scheduler.is_idle = False
    for number in (1, 2):
        run.queue.append(landed(number, epoch=number))
    run.thread.start()
    run.wait_for(lambda: run.scheduler.handed == [1, 2])
    run.queue.close()
    run.scheduler.applied = [AppliedRange(landed(1), 3, True, 1.5)]
    run.wait_for(lambda: run.flushes == [FlushReason.DDL])
    assert run.thread.is_alive()
    run.scheduler.applied = [AppliedRange(landed(2), 0, False, 0.5)]
    run.scheduler.is_idle = True
    run.end()
    assert [run.applied.take(0, 0).batch for _ in range(2)] == [1, 2]
    assert (run.error, run.scheduler.writes) == (None, False)
    assert run.scheduler.counters.counts().spent["s", "apply"] == (2, 2.0)


def test_a_stop_ends_it_between_ranges(run):
    run.thread.start()
    run.stop.request()
    run.end()
    assert run.error is None


def test_it_raises_the_error_of_a_turn(run):
    run.thread.start()
    run.scheduler.failure = LakehouseError("the storage is full", hint="free space")
    run.end()
    assert run.error is run.scheduler.failure


def test_no_ranges_are_handed_over_without_room(run):
    run.scheduler.has_room = run.scheduler.is_idle = False
    run.queue.append(landed(1))
    run.queue.close()
    run.thread.start()
    threading.Event().wait(0.1)
    assert run.scheduler.handed == []
    run.scheduler.has_room = run.scheduler.is_idle = True
    run.end()
    assert run.scheduler.handed == [1]


def test_it_waits_for_other_sources_that_may_release_its_shards(run):
    """It waits as long as one of them is active; after that, no shard can continue."""
    run.scheduler.shards = shards = Coordination(Mode.PESSIMISTIC)
    shards.begins()  # this source, when it was opened
    shards.begins()  # another one
    run.queue.close()
    run.thread.start()
    run.wait_for(lambda: run.scheduler.resumed > 2)
    assert (run.thread.is_alive(), shards.heard) == (True, 1)
    shards.ends()
    run.end()
    assert not shards.at_rest()  # it is active until the pipeline has ended it
    shards.ends()
    assert shards.at_rest()


def test_an_idle_source_has_the_catalogs_structures(run, monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
    run.thread.start()
    run.wait_for(lambda: run.scheduler.shards.heard == 1)


def test_a_stop_with_time_to_drain_applies_what_has_landed(run):
    """This includes ranges that land during the stop; it ends once every table is at the end of bronze."""
    run.drain()
    run.queue.close()
    run.scheduler.applied = [AppliedRange(landed(1), 1, False, 0.5)]
    run.wait_for(lambda: run.applied.take(0, 0) is not None)
    assert run.thread.is_alive()
    run.scheduler.is_idle = True
    run.end()


def test_a_drain_ends_with_a_failure(run):
    """The failure may be in any stage; the tables keep their positions."""
    run.drain()
    run.stop.fail(LakehouseError("the storage is full", hint="free space"))
    run.end()
    assert run.error is None
