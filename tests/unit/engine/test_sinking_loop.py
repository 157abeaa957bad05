"""The sink's loop: its interval changes before the target answers, and while changes are executed."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.config import SinkConfig
from dmdelta.config.syncer import SyncerConfig
from dmdelta.engine import sink as loops
from dmdelta.engine.control import supervise
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.sink import SinkingLoop, sink_settings
from dmdelta.errors import TargetUnavailable
from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.reload_feed import ReloadFeed

WAIT = 30.0


class FakeSink:
    """A sink without anything to execute: it counts how often it may flush."""

    position = oldest = None

    def __init__(self, interval):
        self.flusher = SimpleNamespace(interval=interval)
        self.dispatcher = SimpleNamespace(check=lambda: None)
        self.reloader = SimpleNamespace(done={})
        self.ended, self.idle = None, threading.Event()

    def reload_if_due(self, _):
        return True

    def flush_if_due(self):
        self.idle.set()

    def metrics(self):
        raise AssertionError

    def end(self, *, orderly):
        self.ended = orderly


@pytest.fixture
def looping(monkeypatch):
    """A loop whose target refuses the first connection and answers once `answers` is set."""
    sink, answers, refused = FakeSink(30.0), threading.Event(), threading.Event()
    stop, ranges = StopRequest(), RangeQueue()

    def open_sink(*_):
        if not refused.is_set():
            refused.set()
            raise TargetUnavailable("down", hint="none")
        assert answers.wait(WAIT)
        return sink

    monkeypatch.setattr(loops, "newest_landed", lambda *_: None)
    monkeypatch.setattr(loops, "expired_to", lambda *_: None)
    monkeypatch.setattr(loops, "open_sink", open_sink)
    loop = SinkingLoop(None, SimpleNamespace(source_id="s1"), None, ranges, ReloadFeed())
    loop.start("sink-s1", stop)
    assert refused.wait(WAIT)
    yield SimpleNamespace(loop=loop, sink=sink, answers=answers)
    stop.request()
    answers.set()
    assert loop.join(WAIT)
    assert sink.ended is True


def test_the_interval_before_the_target_answers(looping):
    """A change while the target is down applies to the sink that is opened later."""
    looping.loop.change_interval(7.0)
    looping.answers.set()
    assert looping.sink.idle.wait(WAIT)
    assert looping.sink.flusher.interval == 7.0


def test_the_interval_while_the_sink_runs(looping):
    """The running sink's flusher gets it."""
    looping.answers.set()
    assert looping.sink.idle.wait(WAIT)
    looping.loop.change_interval(0.5)
    assert looping.sink.flusher.interval == 0.5


def test_the_error_of_a_target_that_does_not_answer(looping):
    """It is shown until the target answers; the sink has not stopped."""
    assert looping.loop.trouble.message == "down"
    assert looping.loop.failure is None
    looping.answers.set()
    assert looping.sink.idle.wait(WAIT)
    assert looping.loop.trouble is None


@pytest.mark.parametrize("pending", [True, False])
def test_a_run_that_ends_does_not_wait_for_its_target_without_end(monkeypatch, pending):
    """After the last attempt the sink has failed with the error, whether or not ranges wait for it."""
    attempts, stop, ranges = [], StopRequest(), RangeQueue()

    def refuse(*_):
        attempts.append(1)
        raise TargetUnavailable("down", hint="none")

    monkeypatch.setattr(loops, "newest_landed", lambda *_: None)
    monkeypatch.setattr(loops, "open_sink", refuse)
    monkeypatch.setattr(supervise, "AGAIN", Retry(first=0.0))
    if pending:
        ranges.append(SimpleNamespace())
    ranges.close()
    loop = SinkingLoop(None, SimpleNamespace(source_id="s1"), None, ranges, ReloadFeed())
    loop.start("sink-s1", stop)
    assert loop.join(WAIT)
    assert len(attempts) == supervise.AGAIN.attempts
    assert isinstance(loop.failure, TargetUnavailable)


@pytest.mark.parametrize(("flush", "synchronous"), [("sync", True), ("async", False)])
def test_the_specs_flush(flush, synchronous):
    """`flush: sync` reaches the sink; `async` is the default."""
    spec, chosen = SimpleNamespace(syncer=SyncerConfig(), sources=()), {} if flush == "async" else {"flush": flush}
    settings = sink_settings(spec, SinkConfig(kind="mysql", host="h", user="u", **chosen))
    assert settings.synchronous is synchronous


def landed_range(batch, begin, end):
    return LandedRange(batch, *(Position(1, "binlog.000001", offset) for offset in (begin, end)), gtid_set="")


class WaitingSink(FakeSink):
    """A sink that leaves the first range in the middle: it waits at a statement of a table that a snapshot reads."""

    def __init__(self, stop):
        super().__init__(30.0)
        self.position, self.progress, self.applied, self.stop = None, Progress(), [], stop

    def apply(self, begin, end, _, safe_until):
        self.stop.request(drain=WAIT)
        self.applied.append((begin.offset, end.offset))
        self.position = end if len(self.applied) > 1 else replace(begin, offset=begin.offset + 100)
        return len(self.applied) > 1


def test_a_range_that_was_left_is_the_last_of_the_run(monkeypatch):
    """A sink that leaves the backlog takes no later range from the queue, which a stop drains."""
    backlog, stop, ranges = landed_range(1, 100, 400), StopRequest(), RangeQueue()
    sink = WaitingSink(stop)
    ranges.append(landed_range(2, 400, 500))
    ranges.close()
    monkeypatch.setattr(loops, "newest_landed", lambda *_: backlog)
    monkeypatch.setattr(loops, "ranges_after", lambda *_: [backlog])
    monkeypatch.setattr(loops, "expired_to", lambda *_: None)
    monkeypatch.setattr(loops, "open_sink", lambda *_: sink)
    loop = SinkingLoop(None, SimpleNamespace(source_id="s1"), None, ranges, ReloadFeed())
    loop.start("sink-s1", stop)
    assert loop.join(WAIT)
    assert sink.applied == [(100, 400)]
    assert sink.ended is True
