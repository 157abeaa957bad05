"""Transient errors are retried: a worker on a real server, without Spark."""

import threading
import time

import pytest

from dmdelta.errors import TargetUnavailable
from dmdelta.failpoint import CrashPoint
from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.transaction import ChangeWork
from dmdelta.sink.execute.worker import Batch, Worker
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.metadata import Metadata
from tests.support.sinking import Hang, target_of

END = Position(1, "binlog.000001", 900)


def place(seq):
    return Position(1, "binlog.000001", seq)


def updates(database, *keys):
    """One UPDATE per row."""
    shape = Shape(f"{database}.t", "(id,n)", "n=VALUES(n)", "id")
    return [
        (shape, Change(Act.UPDATE, str(key), None, f"({key},9)", "n=9", (f"{key}.t",), ((100 + key, 0),)))
        for key in keys
    ]


class Bench:
    """A worker and a dispatcher over a table of 100 rows in a target."""

    def __init__(self, server):
        self.server = server
        self.database = server.fresh_database("retry")
        rows = ", ".join(f"({key}, 0)" for key in range(100))
        server.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT)", f"INSERT INTO t VALUES {rows}", database=self.database
        )
        self.failures = []
        target, self.snapshots = target_of(server), Snapshots(1)
        self.metadata = Metadata(f"dm_{self.database}", "t", "s1", "run")
        with session(target) as connection:
            self.metadata.create(connection)
            self.metadata.take_over(connection, 1)
        retry = Retry(first=0.05, longest=0.2)
        self.worker = Worker(0, target, self.metadata, self.snapshots.receive, self.failures.append, retry=retry)
        self.dispatcher = Dispatcher([], Causality(1), self.snapshots, 10)
        self.dispatcher.begin([self.worker])

    def give(self, ordinal, *keys):
        work = ChangeWork(updates(self.database, *keys))
        self.worker.queue.put(Batch(ordinal, 1, work, Style(multiple_rows=False), 100, 300, place))

    def values(self, *keys):
        listed = ", ".join(map(str, keys))
        return [n for (n,) in self.server.query(f"SELECT n FROM t WHERE id IN ({listed}) ORDER BY id", self.database)]

    def wait(self, rows):
        end = time.monotonic() + 30
        while self.worker.counts.rows < rows and not self.failures:
            assert time.monotonic() < end, "the worker does not come on"
            time.sleep(0.02)

    def recorded(self):
        return self.server.query(f"SELECT count(*) FROM {self.metadata.executed}")[0][0]


@pytest.fixture(params=["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)])
def bench(request):
    made = Bench(request.getfixturevalue(request.param))
    yield made
    assert made.dispatcher.end(10.0)
    assert made.failures == []


def test_a_deadlock_is_retried(bench):
    """Another session's transaction wins; the worker's is executed after it, and recorded once."""
    with bench.server.connect(database=bench.database, autocommit=False) as other, other.cursor() as cursor:
        # InnoDB rolls back the transaction that has changed fewer rows.
        cursor.execute("UPDATE t SET n = 1 WHERE id BETWEEN 2 AND 99")
        bench.give(1, 1, 2)
        waiting = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        while not bench.server.query(waiting)[0][0]:
            time.sleep(0.1)  # InnoDB refreshes this table at most this often
        cursor.execute("UPDATE t SET n = 1 WHERE id = 1")
        other.commit()
    bench.wait(2)
    assert bench.worker.counts.retries == 1
    assert bench.values(1, 2, 3) == [9, 9, 1]
    assert bench.recorded() == 1


def test_a_killed_connection_is_opened_again(bench):
    """Executed changes are kept; later ones use a new connection."""
    bench.give(1, 1)
    bench.wait(1)
    sessions = "SELECT id FROM information_schema.processlist WHERE user = 'sink'"
    for (number,) in bench.server.query(sessions):
        bench.server.execute(f"KILL {number}")
    bench.give(2, 2)
    bench.wait(2)
    assert bench.worker.counts.retries == 1
    assert (bench.values(1, 2), bench.recorded()) == ([9, 9], 2)


@pytest.mark.parametrize("point", [CrashPoint.SINK_BEFORE_RECORD, CrashPoint.SINK_BEFORE_COMMIT])
def test_a_failure_within_a_transaction_is_retried(bench, monkeypatch, point):
    """The record of the failed transaction is not taken for that of a committed one."""
    failures = [TargetUnavailable("injected")]

    def fail_once(here):
        if here is point and failures:
            raise failures.pop()

    monkeypatch.setattr("dmdelta.sink.execute.worker.reach", fail_once)
    bench.give(1, 5)
    bench.wait(1)
    assert (bench.values(5), bench.recorded(), failures) == ([9], 1, [])


def test_a_worker_that_hangs_leaves_no_lock(bench, monkeypatch):
    """The end waits with a limit; then the target rolls the transaction back, so the next run is not blocked."""
    hang = Hang(CrashPoint.SINK_BEFORE_COMMIT)
    monkeypatch.setattr("dmdelta.sink.execute.worker.reach", hang)
    bench.give(1, 5)
    assert hang.passed.wait(30)
    assert not bench.dispatcher.end(0.2)
    bench.server.execute("UPDATE t SET n = 1 WHERE id = 5", database=bench.database)
    hang.released.set()
    assert bench.dispatcher.end(30)
    assert isinstance(bench.failures.pop(), TargetUnavailable)
    assert (bench.values(5), bench.recorded()) == ([1], 0)


def test_a_stop_waits_with_a_limit(bench):
    """A lock blocks a worker: the drain gives up in time, and succeeds once the lock is released."""
    bench.dispatcher.enter(Scope(1, 100, 300, Style(), place))
    with bench.server.connect(database=bench.database, autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("UPDATE t SET n = 1 WHERE id = 5")
        ((shape, change),) = updates(bench.database, 5)
        bench.dispatcher.dispatch(shape, [change])
        began = time.monotonic()
        assert not bench.dispatcher.drain(END, 1.0)
        assert time.monotonic() - began < 5
        releasing = threading.Timer(0.5, other.rollback)
        releasing.start()
        assert bench.dispatcher.drain(END, 20.0)
        releasing.join()  # the worker may continue before this connection gets its answer
    assert bench.values(5) == [9]
