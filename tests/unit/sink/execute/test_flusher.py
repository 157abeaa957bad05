"""The sink's checkpoint without a server: when it is written, the counters, and the log lines."""

import threading
from types import SimpleNamespace

import pytest

from dmdelta.errors import Fenced, TargetUnavailable
from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.purger import purge_executed
from dmdelta.sink.plan.checkpoint import Checkpoint, PushedPoint
from dmdelta.sink.target.metadata import Metadata
from tests.support.logged import logged
from tests.unit.sink.fake_target import SERVER, SOON, WAIT, FakeTarget, error_of_cut_off, lost

LONG, INTERVAL = 3600.0, 0.01


def at(offset):
    return Position(1, "binlog.000001", offset)


class Run:
    """A flusher, and snapshots that two workers reach on request."""

    def __init__(self, interval):
        self.snapshots, self.written, self.reached = Snapshots(2, "s1"), [], threading.Event()
        self.flusher = Flusher(
            None, SimpleNamespace(source_id="s1"), self.snapshots, Progress(), interval, self.fail, flushed=None
        )
        self.failures, self.pushed = [], 0

    def fail(self, error):
        self.failures.append(error)
        self.reached.set()

    def write(self, checkpoint):
        self.written.append(checkpoint.position)
        self.reached.set()

    def push(self, offset):
        self.pushed += 1
        self.snapshots.push(self.pushed, PushedPoint(at(offset), at(offset)))

    def ready(self, number):
        for worker in (0, 1):
            self.snapshots.receive(number, worker)


@pytest.fixture
def opened(monkeypatch):
    made = []

    def make(interval=LONG):
        made.append(Run(interval))
        return made[-1]

    monkeypatch.setattr(Flusher, "_transaction", lambda self, checkpoint: made[-1].write(checkpoint))
    yield make
    for run in made:
        run.flusher.end()
        assert run.failures == []


@pytest.fixture
def told():
    with logged("dmdelta.sink") as told:
        yield told


def test_the_interval_is_changed_at_run_time(opened):
    """A flusher that waits for an hour writes soon after the interval is shortened, and again at that interval."""
    run = opened()
    run.flusher.start()
    run.push(100)
    run.ready(1)
    assert not run.reached.wait(0.2)
    run.flusher.interval = INTERVAL
    assert run.reached.wait(WAIT)
    run.reached.clear()
    run.push(200)
    run.ready(2)
    assert run.reached.wait(WAIT)
    assert run.written == [at(100), at(200)]


def test_a_longer_interval_at_run_time(opened):
    """After the interval is lengthened, a ready snapshot is not written until the end."""
    run = opened(INTERVAL)
    run.flusher.start()
    run.push(100)
    run.ready(1)
    assert run.reached.wait(WAIT)
    run.flusher.interval = LONG
    assert not run.flusher._ending.wait(0.3)  # a flush of the short interval may still be in progress
    run.push(200)
    run.ready(2)
    assert not run.flusher._ending.wait(0.3)
    assert run.written == [at(100)]


def test_flushes_are_counted_with_their_spans(opened):
    """Snapshots that became ready, and those that were flushed, with the time since each was pushed."""
    run = opened()
    for number in (1, 2, 3, 4):
        run.push(100 * number)
    for number in (1, 2, 3):
        run.ready(number)
    run.flusher.flush_ready()
    run.flusher.flush_ready()
    counts = run.flusher.counts
    assert run.written == [at(300)]
    assert counts.flushes == 1
    assert (run.snapshots.spans.times, counts.spans.times) == (3, 1)
    assert 0 < run.snapshots.newest_ready.seconds <= counts.spans.seconds
    assert run.snapshots.spans.seconds >= run.snapshots.newest_ready.seconds
    assert run.snapshots.received == {4: {0: False, 1: False}}


def test_the_log_follows_a_snapshot(opened, told):
    """Pushed and ready are debug lines, flushed and purged info lines: positions and numbers, once per flush."""
    run = opened()
    for number in (1, 2):
        run.push(100 * number)
        run.ready(number)
    run.flusher.flush_ready()
    run.flusher.flush_ready()
    assert [(level, text) for level, text, _ in told] == [
        ("DEBUG", "sink snapshot pushed"),
        ("DEBUG", "sink snapshot ready"),
        ("DEBUG", "sink snapshot pushed"),
        ("DEBUG", "sink snapshot ready"),
        ("INFO", "sink checkpoint flushed"),
        ("INFO", "sink snapshots purged"),
    ]
    assert {context["source"] for _, _, context in told} == {"s1"}
    assert [context.get("snapshot") for _, _, context in told] == [1, 1, 2, 2, None, 2]
    assert [context["position"] for _, _, context in told] == [str(at(100 * n)) for n in (1, 1, 2, 2, 2, 2)]
    purged = told[-1][2]
    assert (purged["count"], purged["pushed"]) == (2, str(at(200)))
    assert purged["ready_after_s"] <= purged["flushed_after_s"]


def test_the_log_of_causality_has_numbers_only(told):
    """Purges and resets, with the number of keys: no key is logged."""
    snapshots = Snapshots(1, "s1")
    dispatcher = Dispatcher([], Causality(1), snapshots, 10)
    queue = SimpleNamespace(put=lambda message, timeout: snapshots.receive(message.id, 0))
    dispatcher.begin([SimpleNamespace(start=lambda: None, queue=queue)])
    dispatcher.causality.place(["secret.1", "secret.2"])
    dispatcher.push(None)
    purge_executed(dispatcher.causality, snapshots)
    dispatcher.causality.add(["secret.3"])
    assert dispatcher.drain(None, WAIT)
    assert [one for one in told if one[1].startswith("causality")] == [
        ("DEBUG", "causality keys purged", {"source": "s1", "snapshot": 1, "count": 2, "left": 0}),
        ("DEBUG", "causality reset", {"source": "s1", "snapshot": 2, "count": 1}),
    ]
    assert "secret" not in str(told)


STOP = Checkpoint(at(100), at(100), reason="stop")


@pytest.fixture
def target(monkeypatch):
    with FakeTarget(monkeypatch, lambda connection, sql: (("run",),) if "FOR UPDATE" in sql else ()) as made:
        yield made


@pytest.fixture
def flusher(target):
    """A flusher that writes to the target; it has nothing to write in the background."""
    snapshots, metadata = Snapshots(1, "s1"), Metadata("dm_meta", "t", "s1", "run")
    made = Flusher(SERVER, metadata, snapshots, Progress(), INTERVAL, lambda error: None)
    made._session.retry = SOON
    yield made
    made.end()


def test_a_checkpoint_while_the_target_restarts(target, flusher):
    """Refused connections are no failure of the sink."""
    refusals = [1, 1, 1]

    def refuse():
        if refusals:
            refusals.pop()
            raise TargetUnavailable("down", hint="none")

    target.connecting = refuse
    flusher.write(STOP)
    assert (flusher.flushed, len(target.connections)) == (STOP, 1)


def test_another_run_has_taken_over(target, flusher):
    """The connection is closed: it does not keep the owner row locked."""
    target.answer = lambda connection, sql: (("next",),)
    with pytest.raises(Fenced):
        flusher.write(STOP)
    assert [connection.closed for connection in target.connections] == [True]


def test_a_write_that_hangs_is_cut_off(target, flusher):
    """It does not connect again, where it would lock the owner row once more; nor does the last checkpoint."""
    assert error_of_cut_off(target, lambda: flusher.write(STOP), flusher.cut_off)
    with pytest.raises(TargetUnavailable):
        flusher.write_last(STOP)
    assert len(target.connections) == 1


def test_the_last_checkpoint_does_not_wait_for_the_background(target, flusher):
    """A write that waits for its next attempt gives up; the last one has attempts of its own."""
    flusher._session.retry, failed, failures = Retry(first=LONG, longest=LONG), threading.Event(), []
    down = [True]

    def answer(connection, sql):
        if down:
            failed.set()
            lost()
        return (("run",),) if "FOR UPDATE" in sql else ()

    target.answer, flusher.failed = answer, failures.append
    flusher.progress.raise_exit_point(at(100))
    flusher.snapshots.push(1, PushedPoint(at(100), at(100)))
    flusher.snapshots.receive(1, 0)
    flusher.start()
    assert failed.wait(WAIT)
    down.clear()
    flusher.write_last(STOP, attempts=3)
    assert flusher.flushed == STOP
    assert [type(error) for error in failures] == [TargetUnavailable]


def test_the_last_checkpoint_is_repeated(target, flusher):
    """As often as its caller says."""
    target.answer = lambda *_: lost()
    with pytest.raises(TargetUnavailable):
        flusher.write_last(STOP, attempts=3)
    assert len(target.connections) == 3
