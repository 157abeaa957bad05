"""Transient errors on TiDB are retried: a worker on the real server, without Spark."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.transaction import ChangeWork
from dmdelta.sink.execute.worker import Batch
from tests.integration.test_sink_retries import Bench, place, updates

pytestmark = pytest.mark.tidb


@dataclass
class Interrupted:
    """Changes with one event in between: after the first statement, while the transaction is open."""

    changes: ChangeWork
    happens: Callable[[], object]
    happened: bool = field(default=False)

    def __len__(self):
        return len(self.changes)

    def statements(self, style):
        for statement in self.changes.statements(style):
            yield statement
            if not self.happened:
                self.happened = True
                self.happens()

    def singly(self, style):
        return self.changes.singly(style)

    def record(self):
        return self.changes.record()


@pytest.fixture
def bench(tidb):
    made = Bench(tidb)
    yield made
    assert made.dispatcher.end(10.0)
    assert made.failures == []


@pytest.fixture
def setting(tidb):
    """Sets global variables during a test."""
    before = {}

    def set_to(name, value):
        before[name] = tidb.query(f"SELECT @@GLOBAL.{name}")[0][0]
        tidb.execute(f"SET GLOBAL {name} = {value!r}")

    yield set_to
    for name, value in before.items():
        tidb.execute(f"SET GLOBAL {name} = {value!r}")


def interrupt(bench, happens):
    """The worker updates rows 1 and 2, with an event in between; the error codes after which it retried."""
    work = Interrupted(ChangeWork(updates(bench.database, 1, 2)), happens)
    bench.worker.queue.put(Batch(1, 1, work, Style(multiple_rows=False), 100, 300, place))
    bench.wait(2)


def tried_again(caplog):
    return [one.context["code"] for one in caplog.records if one.getMessage() == "attempt failed, retrying"]


def test_a_write_conflict(bench, setting, caplog):
    """An optimistic transaction finds another one's commit at its own: it is executed after it, once."""
    setting("tidb_txn_mode", "optimistic")
    interrupt(bench, lambda: bench.server.execute("UPDATE t SET n = 1 WHERE id IN (1, 3)", database=bench.database))
    assert tried_again(caplog) == [9007]
    assert (bench.values(1, 2, 3), bench.recorded()) == ([9, 9, 1], 1)


def test_a_schema_that_changed_meanwhile(bench, setting, caplog):
    """Without metadata locks a commit may find another structure than its statements: all of it is executed again."""
    setting("tidb_enable_metadata_lock", 0)
    interrupt(bench, lambda: bench.server.execute("ALTER TABLE t ADD more INT", database=bench.database))
    assert tried_again(caplog) == [8028]
    assert (bench.values(1, 2), bench.recorded()) == ([9, 9], 1)


def test_a_deadlock(bench, caplog):
    """The worker's transaction closes the circle, so TiDB rolls it back; it is executed after the other."""
    with bench.server.connect(database=bench.database, autocommit=False) as other, other.cursor() as cursor:
        waiting = threading.Thread(target=cursor.execute, args=("UPDATE t SET n = 1 WHERE id = 1",))

        def close_in():
            cursor.execute("UPDATE t SET n = 1 WHERE id IN (2, 3)")
            waiting.start()
            found = "SELECT 1 FROM information_schema.tidb_trx WHERE state = 'LockWaiting'"
            while not bench.server.query(found):
                time.sleep(0.05)
            threading.Thread(target=lambda: (waiting.join(), other.commit())).start()

        interrupt(bench, close_in)
    assert tried_again(caplog) == [1213]
    assert (bench.values(1, 2, 3), bench.recorded()) == ([9, 9, 1], 1)


def test_a_killed_connection(bench, caplog):
    """It takes the transaction with it: all of it is executed on a new connection."""

    def kill():
        for (number,) in bench.server.query(
            "SELECT id FROM information_schema.processlist WHERE id <> connection_id()"
        ):
            bench.server.execute(f"KILL TIDB {number}")

    interrupt(bench, kill)
    assert len(tried_again(caplog)) == 1
    assert (bench.values(1, 2), bench.recorded()) == ([9, 9], 1)
