"""The sink's checkpoint on a real server, written by two threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from dmdelta.errors import TargetUnavailable
from dmdelta.failpoint import CrashPoint
from dmdelta.model.position import Position
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.plan.checkpoint import Checkpoint, PushedPoint
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.metadata import Metadata
from tests.support.sinking import Hang, target_of


@pytest.fixture
def metadata(mysql80):
    """The tables of a sink, which the run `run` has taken over."""
    made = Metadata(mysql80.fresh_database("flusher"), "t", "s1", "run")
    with session(target_of(mysql80)) as connection:
        made.create(connection)
        made.take_over(connection, 1)
    return made


def test_the_last_write_of_a_position_is_kept(mysql80, metadata):
    """An interval that ends while a stop or a statement's intent is written does not write the same position again."""
    server, at = target_of(mysql80), Position(1, "binlog.000001", 100)
    snapshots: Snapshots[PushedPoint | None] = Snapshots(1)
    snapshots.push(1, PushedPoint(at, at))
    snapshots.receive(1, 0)
    flusher = Flusher(server, metadata, snapshots, Progress(), 1.0, lambda error: None)
    interval = threading.Thread(target=flusher.flush_ready)
    stop = Checkpoint(at, at, reason="stop")
    with flusher._writing:  # as `write` does
        interval.start()
        time.sleep(0.5)
        flusher._transaction(stop)
        flusher.flushed = stop
    interval.join()
    flusher.end()
    with session(server) as connection:
        assert metadata.points.read(connection) == stop


def test_a_write_that_hangs_leaves_no_lock(mysql80, metadata, monkeypatch):
    """The end of its session lets the next run take over; released, it neither connects again nor writes."""
    server, at = target_of(mysql80), Position(1, "binlog.000001", 100)
    hang = Hang(CrashPoint.SINK_MID_FLUSH)
    monkeypatch.setattr("dmdelta.sink.execute.flusher.reach", hang)
    flusher = Flusher(server, metadata, Snapshots(1), Progress(), 1.0, lambda error: None)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(flusher.write, Checkpoint(at, at, reason="interval"))
        assert hang.passed.wait(30)
        flusher.cut_off()
        with session(server) as connection:
            replace(metadata, run="next").take_over(connection, 1)
            assert metadata.points.read(connection) is None
        hang.released.set()
        with pytest.raises(TargetUnavailable):
            writing.result(60)
    with session(server) as connection:
        assert metadata.points.read(connection) is None
    flusher.end()
