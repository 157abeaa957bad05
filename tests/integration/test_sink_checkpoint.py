"""The sink's checkpoint in the target's dm_meta: DM's kinds of points, the end after an error, an earlier layout."""

import threading
import time

import pytest

from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.ending import Ending
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.worker import Worker
from dmdelta.sink.plan.checkpoint import AboutTo, Checkpoint, PushedPoint
from dmdelta.sink.startup import flushed_position
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.metadata import Metadata
from tests.support.sinking import target_of

COLUMNS = "cp_schema, cp_table, binlog_pos, exit_safe_binlog_pos, binlog_gtid, exit_safe_binlog_gtid, is_global, reason"


def at(offset):
    return Position(1, "binlog.000001", offset)


class Run:
    """A run of two workers with given changes; `fails` and `waits` are its tables."""

    def __init__(self, server):
        self.server, self.database = server, server.fresh_database("points")
        for table in ("fails", "waits"):
            server.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)", database=self.database)
        server.execute("INSERT INTO fails VALUES (1)", "INSERT INTO waits VALUES (0)", database=self.database)
        self.target = target_of(server)
        self.metadata = Metadata(f"dm_{self.database}", "t", "s1", "run")
        with session(self.target) as connection:
            self.metadata.create(connection)
            self.metadata.take_over(connection, 2)
        snapshots, self.progress = Snapshots(2), Progress()
        self.progress.add_gtids(at(100), "a:1-5")
        self.progress.add_gtids(at(200), "a:1-6")
        self.dispatcher = Dispatcher([], Causality(2), snapshots, 1)
        retry = Retry(first=0.05, longest=0.2)
        self.dispatcher.begin(
            [
                Worker(number, self.target, self.metadata, snapshots.receive, self.dispatcher.fail, retry=retry)
                for number in range(2)
            ]
        )
        self.flusher = Flusher(self.target, self.metadata, snapshots, self.progress, 600.0, self.dispatcher.fail)

    def slice(self, begin, end, *inserts):
        """Hand over a slice of (table, key), as the sink does."""
        self.progress.raise_exit_point(end)
        self.dispatcher.enter(Scope(1, begin.seq, end.seq - 1, Style(), lambda seq: begin))
        for number, (table, key) in enumerate(inserts):
            name = f"`{self.database}`.`{table}`"
            self.progress.add_table((self.database, table), name, begin)
            change = Change(Act.INSERT, str(key), None, f"({key})", None, (f"{key}.{table}",), ((begin.seq, number),))
            self.dispatcher.dispatch(Shape(name, "(id)", "", "id"), [change])
        self.dispatcher.push(PushedPoint(end, end))

    def end(self, point, *, orderly):
        return Ending(self.dispatcher, self.flusher, self.progress).end(PushedPoint(point, point), orderly=orderly)

    def stored(self):
        with session(self.target) as connection:
            return self.metadata.points.read(connection)

    def rows(self):
        return self.server.query(f"SELECT {COLUMNS} FROM {self.metadata.points.name} ORDER BY is_global DESC, cp_table")

    def keys_of_the_other_worker(self):
        """Two keys of `waits` that the worker of key 1 of `fails` does not get."""
        worker = self.dispatcher.causality.worker_of
        return [key for key in range(3, 200) if worker(f"{key}.waits") != worker("1.fails")][:2]

    def keys(self, table):
        return [key for (key,) in self.server.query(f"SELECT id FROM {table} ORDER BY id", self.database)]


@pytest.fixture(params=["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)])
def run(request):
    return Run(request.getfixturevalue(request.param))


def test_after_an_error_the_other_workers_execute_their_changes(run):
    """One worker fails, another waits for a lock: then the exit point is written, with the table's own point."""
    run.slice(at(4), at(100), ("waits", 1), ("fails", 2))
    assert run.dispatcher.drain(PushedPoint(at(100), at(100)), 20.0)
    first, second = run.keys_of_the_other_worker()
    with run.server.connect(database=run.database, autocommit=False) as other, other.cursor() as cursor:
        cursor.execute(f"INSERT INTO waits VALUES ({first})")
        run.slice(at(100), at(200), ("waits", first), ("waits", second), ("fails", 1))
        wait(lambda: run.dispatcher.failure is not None)
        releasing = threading.Timer(0.5, other.rollback)
        releasing.start()
        run.end(at(200), orderly=False)
        releasing.join()
    assert run.keys("waits") == [0, 1, first, second]
    stored = run.stored()
    assert (stored.position, stored.exit_point, stored.ended) == (at(100), at(200), True)
    assert stored.ahead() == {(run.database, "waits"): at(200)}
    assert run.rows() == (
        ("", "", 100, 200, "a:1-5", "a:1-6", 1, "error"),
        (run.database, "fails", 100, None, None, None, 0, "error"),
        (run.database, "waits", 200, None, None, None, 0, "error"),
    )


def test_an_orderly_stop_has_one_point(run):
    """All workers are drained: global point, table points and exit point are the same."""
    run.slice(at(4), at(100), ("waits", 1))
    assert run.end(at(100), orderly=True)
    tables = {(run.database, "waits"): at(100)}
    assert run.stored() == Checkpoint(at(100), at(100), tables, gtid_set="a:1-5", exit_gtid_set="a:1-5", reason="stop")


def test_a_worker_that_fails_while_it_is_drained(run):
    """The stop raises the worker's error and still writes the exit point; the next run has safe mode up to it."""
    run.slice(at(4), at(100), ("waits", 1))
    assert run.dispatcher.drain(PushedPoint(at(100), at(100)), 20.0)
    run.slice(at(100), at(200), ("fails", 1))
    with pytest.raises(Exception, match="Duplicate entry"):
        run.end(at(200), orderly=True)
    stored = run.stored()
    assert (stored.position, stored.exit_point, stored.reason) == (at(100), at(200), "error")


EARLIER = (
    "CREATE TABLE {} (id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, "
    "run VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, epoch INT NOT NULL, "
    "binlog_name VARCHAR(255) NOT NULL, binlog_pos BIGINT NOT NULL, exit_point_epoch INT NULL, "
    "exit_point_binlog_name VARCHAR(255) NULL, exit_point_binlog_pos BIGINT NULL, about_to_epoch INT NULL, "
    "about_to_binlog_name VARCHAR(255) NULL, about_to_binlog_pos BIGINT NULL, about_to_part INT NULL, "
    "reason VARCHAR(16) NOT NULL, "
    "updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"
)
"""As dmdelta created it before version with table points."""


@pytest.mark.parametrize(
    "server",
    ["mysql80_too", "mariadb", pytest.param("tidb", marks=[pytest.mark.tidb, pytest.mark.long])],
)
def test_an_earlier_layout_is_taken_over(request, server):
    """Each source keeps position and intent; an exit point from before hand-over was ordered is not final."""
    server = request.getfixturevalue(server)
    target, schema = target_of(server), server.fresh_database("earlier")
    first, second = (Metadata(schema, "t", source, "run") for source in ("s1", "s2"))
    name = first.points.earlier
    row = "'old', 1, 'binlog.000001'"
    server.execute(
        EARLIER.format(name),
        f"INSERT INTO {name} VALUES ('s1', {row}, 700, 1, 'binlog.000001', 900, NULL, NULL, NULL, NULL, 'pause', now()), "
        f"('s2', {row}, 500, NULL, NULL, NULL, 1, 'binlog.000001', 500, 2, 'ddl', now())",
    )
    assert flushed_position(target, first) == at(700)
    for metadata in (first, second, first):
        with session(target) as connection:
            metadata.create(connection)
    with session(target) as connection:
        paused, about = (metadata.points.read(connection) for metadata in (first, second))
    assert (paused.position, paused.exit_point, paused.ended) == (at(700), at(900), False)
    assert (about.position, about.about_to) == (at(500), AboutTo(at(500), 2))
    assert server.query(f"SELECT count(*) FROM {name}") == ((0,),)
    with session(target) as connection:
        first.take_over(connection, 1)
        first.flush(connection, Checkpoint(at(800), at(800), reason="stop"))
    assert flushed_position(target, first) == at(800)
    assert flushed_position(target, second) == at(500)


def test_points_of_a_release_without_fingerprints(mysql80_too):
    """They are read before and after the sink starts; from its next statement on there is a fingerprint."""
    target, schema = target_of(mysql80_too), mysql80_too.fresh_database("points")
    metadata = Metadata(schema, "t", "s1", "run")
    about = AboutTo(at(500), 1, "f" * 16)
    with session(target) as connection:
        metadata.create(connection)
        metadata.take_over(connection, 1)
        metadata.flush(connection, Checkpoint(at(500), at(501), about_to=about, reason="ddl"))
        connection.commit()
    mysql80_too.execute(f"DROP TABLE {metadata.points.statements}")
    with session(target) as connection:
        assert metadata.points.read(connection).about_to == AboutTo(at(500), 1)
        metadata.create(connection)
        assert metadata.points.read(connection).about_to == AboutTo(at(500), 1)
        metadata.flush(connection, Checkpoint(at(500), at(501), about_to=about, reason="ddl"))
        assert metadata.points.read(connection).about_to == about


def wait(done):
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
