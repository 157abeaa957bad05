"""An ad-hoc snapshot reloads a shard that waits for another one: one source, a real target."""

import random

import pytest

from dmdelta.errors import SinkError, TargetUnavailable
from dmdelta.failpoint import VARIABLE, CrashPoint
from dmdelta.sharding import Coordination, Mode
from dmdelta.sink.plan.reload import AdHocState
from dmdelta.sink.plan.shard_columns import holds_all
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.settings import SinkSettings
from tests.support.shard_log import MemoryLog, Task, at, union_of
from tests.support.sinking import target_of

ADD = ("ALTER TABLE t ADD a INT DEFAULT 5", 5)
DROP = ("ALTER TABLE t DROP v", None)


class Waiting:
    """A log in which the first shard waits at its statement, is read by a snapshot, and then has another ALTER."""

    def __init__(self, server):
        self.server, self.database, self.runs = server, server.fresh_database("waiting"), 0
        self.settings = SinkSettings(target_of(server), f"dm_{self.database}", 2, flush_interval=600.0)
        self.log = log = MemoryLog.of(0, random.Random(1))
        self.first, other = log.shards.values()
        for shard in (self.first, other, self.first, other):
            log.change(shard)
        log.alter(self.first, *ADD)
        self.held_at = log.end
        for _ in range(5):
            log.change(self.first)
        log.snapshot(self.first, changes=2)
        for _ in range(5):
            log.change(self.first)
        log.alter(self.first, *DROP)
        log.change(self.first)
        self.waiting_at = log.end
        for statement in (ADD, DROP):
            log.alter(other, *statement)
            log.change(other)

    def open(self, mode=Mode.PESSIMISTIC, feed=None, *, extracted=True):
        self.runs += 1
        coordination = Coordination(mode, holds_all)
        task = Task(self.database, self.settings, coordination, extracted=extracted)
        return task.open(self.log, f"run-{self.runs}", feed or ReloadFeed(AdHocState(reloads=self.log.reloads)))

    def damage(self):
        """A row of the waiting shard that the source does not have."""
        shard = self.first.name[0]
        self.server.execute(f"INSERT INTO t (id, v, shard) VALUES (9, 9, '{shard}')", database=self.database)

    def rows(self, of):
        return self.server.query(f"SELECT COUNT(*) FROM t WHERE id = {of}", self.database)[0][0]

    def columns(self):
        return [row[0] for row in self.server.query("SHOW COLUMNS FROM t", self.database)]


@pytest.fixture(params=["mariadb", pytest.param("mysql80_too", marks=pytest.mark.long)])
def waiting(request):
    return Waiting(request.getfixturevalue(request.param))


def apply(sink, end):
    assert sink.apply(sink.position or at(4), end, lambda: False)
    sink.resume_shards(lambda: False)


def finish(sink, log):
    """Apply to the end of the log; a shard may wait until the other one has continued."""
    apply(sink, log.end)
    for _ in log.statements:
        sink.resume_shards(lambda: False)
    assert sink.shards.held == {}
    sink.end(orderly=True)


def test_its_rows_are_replaced_when_it_continues(waiting):
    """The snapshot has a column that the target gets from the other shard: until then the target keeps the old rows."""
    sink = waiting.open()
    apply(sink, waiting.held_at)
    waiting.damage()
    apply(sink, waiting.waiting_at)
    assert (waiting.columns(), waiting.rows(of=9)) == (["id", "v", "w", "shard"], 1)
    assert (list(sink.shards.held), sink.reloader.done) == ([waiting.first.name], {})
    assert sink.oldest < sink.position
    finish(sink, waiting.log)
    assert sink.reloader.done == {waiting.first.name: -1}
    assert (sorted(waiting.columns()), waiting.rows(of=9)) == (["a", "id", "shard", "w"], 0)
    assert union_of(waiting.server, waiting.database, [waiting.log]) == []


@pytest.mark.parametrize(
    "point",
    [
        CrashPoint.SINK_RELOAD_EMPTIED,
        CrashPoint.SINK_RELOAD_EXECUTED,
        CrashPoint.SINK_BEFORE_STATEMENT,
        CrashPoint.SINK_AFTER_STATEMENT,
        CrashPoint.SINK_RESYNCED,
    ],
)
def test_a_crash_around_the_reload(waiting, monkeypatch, tmp_path, point):
    """Before, in and after the reload: the next run repeats it, or what follows it, and has each row once."""
    sink = waiting.open()
    apply(sink, waiting.held_at)
    waiting.damage()
    apply(sink, waiting.waiting_at)
    armed = tmp_path / "failpoint"
    monkeypatch.setenv(VARIABLE, f"@{armed}")
    armed.write_text(f"{point.value}:1=error:TargetUnavailable")
    with pytest.raises(TargetUnavailable):
        apply(sink, waiting.log.end)
    sink.end(orderly=False)
    armed.unlink(missing_ok=True)
    again = waiting.open()
    finish(again, waiting.log)
    assert (again.reloader.done, waiting.rows(of=9)) == ({waiting.first.name: -1}, 0)
    assert union_of(waiting.server, waiting.database, [waiting.log]) == []


def test_a_stop_in_the_reload(waiting):
    """The shard stays held at the snapshot's position, before its log; the next run starts there."""
    sink = waiting.open()
    apply(sink, waiting.waiting_at)
    (reload,) = waiting.log.reloads
    assert sink.apply(sink.position, waiting.log.end, lambda: False)
    sink.resume_shards(lambda: True)
    assert sink.shards.held[waiting.first.name] == sink.oldest == reload.position
    sink.end(orderly=True)
    again = waiting.open()
    assert again.oldest == reload.position
    finish(again, waiting.log)
    assert union_of(waiting.server, waiting.database, [waiting.log]) == []


def test_rows_without_a_shard_column(waiting):
    """They stay in the target, which also has the log after the snapshot: safe mode repeats it."""
    log, feed = MemoryLog.of(0, random.Random(2), shards=1), ReloadFeed()
    (shard,) = log.shards.values()
    for _ in range(3):
        log.change(shard)
    log.snapshot(shard)
    for _ in range(9):
        log.change(shard)
    waiting.log = log
    sink = waiting.open(feed=feed, extracted=False)
    apply(sink, log.end)
    feed.end(log.reloads)
    assert sink.reload_if_due(lambda: False)
    sink.end(orderly=True)
    assert sink.reloader.done == {shard.name: -1}
    assert union_of(waiting.server, waiting.database, [log]) == []


def test_without_a_shard_mode(waiting):
    """The held statement would never be executed: the sink's error says what to do."""
    sink = waiting.open()
    apply(sink, waiting.waiting_at)
    sink.end(orderly=True)
    with pytest.raises(SinkError, match=r"shard-mode is not set: shard_0_0\.t") as refused:
        waiting.open(mode=None)
    assert "shard-ddl-lock list" in refused.value.hint
