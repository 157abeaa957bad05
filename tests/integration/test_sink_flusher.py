"""The sink's checkpoint on a real server, written by two threads."""

import threading
import time

from dmdelta.model.position import Position
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.plan.checkpoint import Checkpoint, PushedPoint
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.metadata import Metadata
from tests.support.sinking import target_of


def test_the_last_write_of_a_position_is_kept(mysql80):
    """An interval that ends while a stop or a statement's intent is written does not write the same position again."""
    server, at = target_of(mysql80), Position(1, "binlog.000001", 100)
    metadata = Metadata(mysql80.fresh_database("flusher"), "t", "s1", "run")
    with session(server) as connection:
        metadata.create(connection)
        metadata.take_over(connection, 1)
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
