"""The end of a run with workers and a flusher without a server: what is executed, and the checkpoint."""

import threading
from types import SimpleNamespace

import pytest

from dmdelta.errors import Fenced, TargetUnavailable
from dmdelta.model.position import Position
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute import ending
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.ending import Ending
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.worker import Worker
from dmdelta.sink.plan.checkpoint import AboutTo, Checkpoint, PushedPoint

REFUSED = Fenced("refused", hint="none")


def at(offset):
    return Position(1, "binlog.000001", offset)


class Target:
    """Records what the workers and the flusher of a run have done.

    Attributes:
        open: the workers wait for it before each transaction.
    """

    def __init__(self):
        self.executed, self.checkpoints, self.open, self.down = [], [], threading.Event(), False
        self.open.set()

    def execute(self, batch):
        tables = batch.work.tables
        if "fails" in tables:
            raise REFUSED
        assert self.open.wait(30)
        self.executed += tables

    def write(self, checkpoint):
        if self.down:
            raise TargetUnavailable("down", hint="none")
        self.checkpoints.append(checkpoint)
        return 0


class Run:
    def __init__(self, workers=2):
        self.target, snapshots, self.progress = Target(), Snapshots(workers), Progress()
        self.dispatcher = Dispatcher([], Causality(workers), snapshots, 100)
        made = [Worker(n, None, None, snapshots.receive, self.dispatcher.fail) for n in range(workers)]
        self.flusher = Flusher(
            None, SimpleNamespace(source_id="s1"), snapshots, self.progress, 600.0, self.dispatcher.fail
        )
        self.dispatcher.begin(made)

    def slice(self, begin, end, *tables):
        """One change for each table; that of `fails` goes to the first worker, all others to the last."""
        self.progress.raise_exit_point(end)
        self.dispatcher.enter(Scope(1, begin.seq, end.seq - 1, Style(), lambda seq: begin))
        for table in tables:
            self.progress.add_table(("d", table), table, begin)
            key = next(k for k in map(str, range(1000)) if self.dispatcher.causality.worker_of(k) == (table != "fails"))
            change = Change(Act.INSERT, key, None, f"({key})", None, (key,), ((begin.seq, 0),))
            self.dispatcher.dispatch(Shape(table, "(id)", "", "id"), [change])
        self.dispatcher.push(PushedPoint(end, end))

    def end(self, point, *, orderly):
        return Ending(self.dispatcher, self.flusher, self.progress).end(PushedPoint(point, point), orderly=orderly)


@pytest.fixture
def run(monkeypatch):
    made = Run()
    monkeypatch.setattr(Worker, "_transaction", lambda self, batch: made.target.execute(batch))
    monkeypatch.setattr(Flusher, "_transaction", lambda self, checkpoint: made.target.write(checkpoint))
    monkeypatch.setattr(ending, "BOUNDARY_SECONDS", 0.6)
    made.slice(at(4), at(100), "works")
    assert made.dispatcher.drain(PushedPoint(at(100), at(100)), 20.0)
    return made


def test_workers_that_have_not_failed_finish(run):
    """The point of the failed worker's table is unchanged; the other tables are at the end of what was handed over."""
    run.target.open.clear()
    run.slice(at(100), at(200), "works", "fails")
    threading.Timer(0.2, run.target.open.set).start()
    run.end(at(200), orderly=False)
    assert run.target.executed == ["works", "works"]
    (last,) = run.target.checkpoints
    assert (last.position, last.exit_point, last.reason) == (at(100), at(200), "error")
    assert last.ahead() == {("d", "works"): at(200)}


def test_a_stop_that_times_out_leaves_an_exit_point(run):
    """If a worker hangs, only the last point that all workers have reached is certain."""
    run.target.open.clear()
    run.slice(at(100), at(200), "works")
    threading.Timer(1.5, run.target.open.set).start()
    assert not run.end(at(200), orderly=True)
    (last,) = run.target.checkpoints
    assert (last.position, last.exit_point, last.reason, last.ended) == (at(100), at(200), "stop", True)


def test_the_statement_in_doubt_is_kept(run):
    """After an error in a statement, the next run knows that it may have been executed."""
    run.flusher.flushed = Checkpoint(at(100), at(101), about_to=AboutTo(at(100), 2), reason="ddl")
    run.progress.raise_exit_point(at(101))
    run.end(at(100), orderly=False)
    (last,) = run.target.checkpoints
    assert (last.about_to, last.exit_point) == (AboutTo(at(100), 2), at(101))


def test_a_target_that_is_down_does_not_hide_the_error(run):
    """The checkpoint cannot be written, but the end raises nothing, so the run's own error is reported."""
    run.target.down = True
    assert not run.end(at(100), orderly=False)
    assert run.target.checkpoints == []


def test_nothing_follows_the_last_checkpoint(run):
    """An interval that is due at the end writes nothing."""
    assert run.end(at(100), orderly=True)
    run.flusher.flush_ready()
    (last,) = run.target.checkpoints
    assert (last.position, last.exit_point, last.reason) == (at(100), at(100), "stop")
