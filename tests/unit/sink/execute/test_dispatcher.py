"""Dispatching rows to queues: each row to one worker, in the order that its keys require."""

import numpy as np

from dmdelta.sink.change import Act
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.columnar_compactor import net_rows
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.worker import Mark
from tests.unit.sink.execute.test_columnar_compactor import T, columns_of

SCOPE = Scope(1, 0, 9999, Style(), lambda seq: seq)


class Queue:
    """A worker that executes immediately what is put into its queue, and lists it as `shown` says."""

    def __init__(self, number, snapshots, shown):
        self.number, self.snapshots, self.queue, self.done = number, snapshots, self, []
        self.shown = shown

    def start(self):
        pass

    def put(self, message, timeout):
        if isinstance(message, Mark):
            self.snapshots.receive(message.id, self.number)
        self.done += self.shown(message)


def queues_of(workers, batch, shown):
    """A dispatcher in SCOPE, and its workers' queues."""
    snapshots = Snapshots(workers)
    dispatcher = Dispatcher([], Causality(workers), snapshots, batch)
    queues = [Queue(number, snapshots, shown) for number in range(workers)]
    dispatcher.begin(queues)
    dispatcher.enter(SCOPE)
    return dispatcher, queues


def keys_of(work):
    return work.rows.columns.identity.take(work.rows.last[work.chosen]).to_pylist()


def dispatched(changes, workers=3, batch=10, **columns):
    dispatcher, queues = queues_of(workers, batch, lambda one: [one if isinstance(one, Mark) else keys_of(one.work)])
    rows = net_rows(columns_of(changes, **columns))
    dispatcher.dispatch_rows(T, rows)
    return dispatcher, queues, rows


def test_every_row_goes_to_one_worker_in_batches():
    """All rows, none twice, no batch too long, and each worker's deletes before its inserts."""
    changes = [(Act.INSERT if key % 3 else Act.DELETE, key, "x") for key in range(100)]
    dispatcher, queues, _ = dispatched(changes)
    batches = [batch for one in queues for batch in one.done]
    assert sorted(int(key) for batch in batches for key in batch) == list(range(100))
    assert max(map(len, batches)) == 10
    for one in queues:
        kinds = [int(key) % 3 > 0 for batch in one.done for key in batch]
        assert kinds == sorted(kinds)
    again = net_rows(columns_of(changes))
    assert dispatcher.causality.place(again.keys) == [
        next(number for number, one in enumerate(queues) if any(key in batch for batch in one.done))
        for key in again.columns.identity.take(again.last).to_pylist()
    ]


def test_rows_that_conflict_with_jobs_in_flight_wait_for_them():
    """For a row whose keys belong to two workers, everything before it is sent and drained first."""
    count = 40
    dispatcher, queues, _ = dispatched([(Act.INSERT, key, "x") for key in range(count)], workers=2)
    taken = [(None, f"u{key}") for key in range(count)]
    dispatcher.causality.reset()
    # Unique values of rows of both workers, now used by other rows.
    for key in range(count):
        dispatcher.causality.add([f"u{key}.u.t"])
    changes = [(Act.UPDATE, key, "y") for key in range(count)]
    for one in queues:
        one.done.clear()
    for key in range(count):
        dispatcher.causality.add([f"{key}.a.t"])
    rows = net_rows(columns_of(changes, unique=taken))
    dispatcher.dispatch_rows(T, rows)
    assert dispatcher.causality.counts.resets > 1
    found = [key for one in queues for batch in one.done if not isinstance(batch, Mark) for key in batch]
    assert sorted(map(int, found)) == list(range(count))
    assert np.array_equal(np.unique(rows.acts), [1])
