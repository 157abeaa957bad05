"""Shards of two sources change at random moments, with stops, kills and errors: the target is their union."""

import random
import time
from itertools import cycle

import pytest

from dmdelta.errors import TargetUnavailable
from dmdelta.failpoint import VARIABLE, CrashPoint
from dmdelta.sharding import Coordination, Mode
from dmdelta.sink.plan.reload import AdHocState
from dmdelta.sink.plan.shard_columns import holds_all
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.settings import SinkSettings
from tests.support.shard_log import MemoryLog, Task, at, union_of
from tests.support.sinking import target_of

CHANGES = (
    ("ALTER TABLE t ADD a INT DEFAULT 5", 5),
    ("ALTER TABLE t ADD b BIGINT, DROP v", None),
    ("ALTER TABLE t CHANGE w label VARCHAR(60)", None),
    ("ALTER TABLE t MODIFY a BIGINT DEFAULT 5", None),
    ("ALTER TABLE t DROP b", None),
)
POINTS = (
    *(CrashPoint.SINK_BEFORE_STATEMENT, CrashPoint.SINK_AFTER_STATEMENT, CrashPoint.SINK_RESYNCED),
    *(CrashPoint.SINK_AFTER_FLUSH, CrashPoint.SINK_AFTER_COMMIT, CrashPoint.SINK_DRAINED, CrashPoint.SINK_MID_FLUSH),
)
RELOAD_POINTS = (CrashPoint.SINK_RELOAD_EMPTIED, CrashPoint.SINK_RELOAD_EXECUTED)


class Run:
    """The sinks of both sources, from a start to a stop or a kill."""

    number = 0

    def __init__(self, server, database, logs, mode):
        Run.number += 1
        coordination = Coordination(mode, holds_all)
        settings = SinkSettings(
            target_of(server), metadata=f"dm_{database}", workers=3, batch=5, flush_interval=0.2, sources=len(logs)
        )
        task = Task(database, settings, coordination, extracted=len(logs) == 1)
        feeds = [ReloadFeed(AdHocState(reloads=log.reloads)) for log in logs]
        self.logs = logs
        self.sinks = [task.open(log, f"run-{Run.number}", feed) for log, feed in zip(logs, feeds, strict=True)]

    def go_on(self, number, upto):
        sink = self.sinks[number]
        begin = sink.position or at(4)
        if upto > begin:
            assert sink.apply(begin, upto, lambda: False)
        sink.resume_shards(lambda: False)

    def finish(self):
        """Everything is executed, and no shard waits."""
        deadline = time.monotonic() + 60
        for number, log in enumerate(self.logs):
            self.go_on(number, log.end)
        while any(sink.shards.held for sink in self.sinks):
            assert time.monotonic() < deadline, [sink.shards.held for sink in self.sinks]
            for sink in self.sinks:
                sink.resume_shards(lambda: False)

    def stop(self, *, orderly):
        for sink in self.sinks:
            sink.end(orderly=orderly)

    def kill(self):
        """Write nothing more."""
        for sink in self.sinks:
            sink.dispatcher.end(10)
            sink.flusher.end()
            sink.purger.end()
            sink.tables.close()


def write(chance, logs, changes, snapshots=0.0):
    """Each shard makes all changes in order, at random moments, with row changes and snapshots in between."""
    left = [(log, shard, list(changes)) for log in logs for shard in log.shards.values()]
    for log, shard, _ in left:
        for _ in range(5):
            log.change(shard)
    while left:
        log, shard, ahead = one = chance.choice(left)
        for _ in range(chance.randrange(6)):
            log.change(shard)
        if snapshots and chance.random() < snapshots:
            log.snapshot(shard, chance.randrange(4))
        if chance.random() < 0.4:
            log.alter(shard, *ahead.pop(0))
        if not ahead:
            log.change(shard)
            left.remove(one)


@pytest.fixture
def server(request):
    return request.getfixturevalue(request.param)


SEEDS = [
    pytest.param(seed, target, marks=pytest.mark.long if seed else ())
    for seed, target in zip(range(25), cycle(("mariadb", "mysql80")), strict=False)
]
"""Random work and the server that executes it: one server per seed, because work of all seeds is similar."""


@pytest.fixture
def armed(tmp_path, monkeypatch):
    """A file that a test writes a failure into."""
    monkeypatch.setenv(VARIABLE, f"@{tmp_path / 'failpoint'}")
    return tmp_path / "failpoint"


def execute(chance, start, armed, points):
    """Runs of the sinks over their logs, with stops, kills and errors in between."""
    run = start()
    reached = [0 for _ in run.logs]
    for _ in range(14):
        if chance.random() < 0.5:
            armed.write_text(f"{chance.choice(points).value}:{chance.randrange(1, 4)}=error:TargetUnavailable")
        number = chance.randrange(len(run.logs))
        reached[number] = min(run.logs[number].end.offset, reached[number] + chance.randrange(100, 3000, 50))
        try:
            run.go_on(number, at(reached[number]))
            outcome = chance.choice(["on", "on", "stop", "kill"])
        except TargetUnavailable:
            outcome = chance.choice(["kill", "error"])
        armed.unlink(missing_ok=True)
        if outcome != "on":
            run.kill() if outcome == "kill" else run.stop(orderly=outcome == "stop")
            run = start()
    run.finish()
    run.stop(orderly=True)
    return run


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("seed", "server"), SEEDS, indirect=["server"])
def test_the_union_of_the_shards(server, armed, mode, seed):
    """Whatever is stopped, killed or refused in between, and whatever positions the two sinks have."""
    chance, database = random.Random(seed), server.fresh_database("union")
    logs = [MemoryLog.of(number, chance) for number in (1, 2)]
    write(chance, logs, CHANGES)
    execute(chance, lambda: Run(server, database, logs, mode), armed, POINTS)
    assert union_of(server, database, logs) == []


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("seed", "server"), SEEDS, indirect=["server"])
def test_shards_are_reloaded_meanwhile(server, armed, mode, seed, sources):
    """Ad-hoc snapshots of shards, before, between and after their statements, also of waiting shards."""
    chance, database = random.Random(seed), server.fresh_database("union")
    logs = [MemoryLog.of(number, chance) for number in range(sources)]
    write(chance, logs, CHANGES, snapshots=0.3)
    run = execute(chance, lambda: Run(server, database, logs, mode), armed, (*POINTS, *RELOAD_POINTS))
    assert union_of(server, database, logs) == []
    for log, sink in zip(logs, run.sinks, strict=True):
        assert sink.reloader.done == {one.table: one.epoch for one in log.reloads}
