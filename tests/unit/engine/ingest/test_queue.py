"""The queue of landed batches."""

import threading

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position

SECONDS = 20.0
LANDED = LandedRange(1, Position(1, "binlog.000001", 4), Position(1, "binlog.000001", 90), parse_gtid_set("", "mysql"))


def test_what_is_in_the_queue_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As is the end of a closed queue: nothing else can arrive."""
    monkeypatch.setattr(threading.Condition, "wait", lambda *_: pytest.fail("it waits"))
    queue = RangeQueue()
    queue.append(LANDED)
    assert queue.take(1 << 20, SECONDS) == LANDED
    queue.close()
    assert queue.take(1 << 20, SECONDS) is None


def test_an_empty_queue_waits_for_the_next_batch() -> None:
    """Until the timeout."""
    queue = RangeQueue()
    assert queue.take(1 << 20, 0) is None
    threading.Timer(0.05, queue.append, [LANDED]).start()
    assert queue.take(1 << 20, SECONDS) == LANDED


def test_an_abandoned_queue_keeps_nothing() -> None:
    """Neither what waits nor what is appended later; its follower gets everything."""
    queue, follower = RangeQueue(), RangeQueue()
    queue.append(LANDED)
    queue.follow_with(follower)
    queue.abandon()
    queue.append(LANDED)
    assert queue.take(1 << 20, 0) is None
    assert follower.take(1 << 20, 0) == LANDED
    queue.close()
    assert queue.finished
    assert follower.finished
