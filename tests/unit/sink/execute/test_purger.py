"""Causality is purged in the background of what all workers have executed, while changes are dispatched."""

import random
import threading
from collections import defaultdict
from types import SimpleNamespace

import pytest

from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.purger import Purger, purge_executed
from dmdelta.sink.execute.worker import Worker
from tests.support.causality import relations_of

T = Shape("`d`.`t`", "(id)", "", "id")
SOON = 0.001
WAIT = 30.0


def filled(ordinals=4):
    """A relation map with a generation for each snapshot, and the snapshots."""
    causality, snapshots = Causality(2), Snapshots(2, "s1")
    for number in range(1, ordinals + 1):
        causality.add([f"{number}"])
        snapshots.push(number, None)
        causality.rotate(number)
    return causality, snapshots


def test_only_snapshots_that_all_workers_have_reached_are_purged():
    """A snapshot that one of the workers has not reached, and those after it, keep their keys."""
    causality, snapshots = filled()
    assert purge_executed(causality, snapshots) == 0
    for number in (1, 2, 3):
        snapshots.receive(number, 0)
    for number in (1, 2):
        snapshots.receive(number, 1)
    assert causality.waiting(2) == 2
    assert purge_executed(causality, snapshots) == 2
    assert set(relations_of(causality)) == {"3", "4"}


def test_a_thread_of_its_own_purges_by_interval():
    """The dispatcher calls nothing: the keys are removed once their snapshot is ready."""
    causality, snapshots = filled(1)
    purged, by = threading.Event(), []
    original = causality.purge

    def purge(executed):
        by.append(threading.current_thread().name)
        count = original(executed)
        if count:
            purged.set()
        return count

    purger = Purger(SimpleNamespace(purge=purge, counts=causality.counts), snapshots, pytest.fail, SOON)
    purger.start()
    snapshots.receive(1, 0)
    snapshots.receive(1, 1)
    assert purged.wait(WAIT)
    purger.end()
    assert set(by) == {"sink-purge"}
    assert relations_of(causality) == {}


def test_a_failure_is_reported():
    """The run raises it, like that of a worker; the thread has ended."""
    failed, reported = RuntimeError("broken"), []
    told = threading.Event()

    def fail(error):
        reported.append(error)
        told.set()

    def purge(executed):
        raise failed

    _, snapshots = filled(1)
    snapshots.receive(1, 0)
    snapshots.receive(1, 1)
    purger = Purger(SimpleNamespace(purge=purge), snapshots, fail, SOON)
    purger.start()
    assert told.wait(WAIT)
    purger.end()
    assert reported == [failed]


class Run:
    """Workers without a server that execute one at a time; records all executed changes by key."""

    def __init__(self, workers):
        self.executed, self.lock = defaultdict(list), threading.Lock()
        snapshots = Snapshots(workers, "s1")
        self.dispatcher = Dispatcher([], Causality(workers), snapshots, 3)
        self.purger = Purger(self.dispatcher.causality, snapshots, self.dispatcher.fail, SOON)
        made = [Worker(n, None, None, snapshots.receive, self.dispatcher.fail) for n in range(workers)]
        self.dispatcher.begin(made)
        self.purger.start()

    def execute(self, batch):
        with self.lock:
            for _, change in batch.work.changes:
                for key in change.keys:
                    self.executed[key].append(change.identity)


def test_changes_of_a_key_stay_in_order_while_keys_are_purged(monkeypatch):
    """Thousands of changes with common keys over several workers: each key sees them in the order of the log."""
    run, chosen, dispatched = Run(4), random.Random(11), defaultdict(list)
    monkeypatch.setattr(Worker, "_transaction", lambda self, batch: run.execute(batch))
    run.dispatcher.enter(Scope(1, 0, 9999, Style(), lambda seq: seq))
    for number in range(4000):
        keys = (f"id{chosen.randrange(300)}", *(f"u{chosen.randrange(300)}" for _ in range(number % 9 == 0)))
        for key in keys:
            dispatched[key].append(str(number))
        run.dispatcher.dispatch(T, [Change(Act.INSERT, str(number), None, "(1)", None, keys, ((number, 0),))])
        if number % 20 == 19:
            run.dispatcher.push(None)
    assert run.dispatcher.drain(None, WAIT)
    run.purger.end()
    assert run.dispatcher.end(WAIT)
    counts = run.dispatcher.causality.counts
    assert run.executed == dispatched
    assert counts.added == counts.purged + counts.reset
    assert counts.purged > 0
