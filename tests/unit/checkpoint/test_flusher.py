"""When the points are written: without blocking the appliers, only if changed, and never failing silently."""

import threading
import time
from datetime import timedelta

import pytest

from dmdelta.checkpoint import Flusher, FlushReason, Point, Points, StoredPoints, TablePoint
from dmdelta.errors import LakehouseError, StageFailed
from dmdelta.model.position import Position

A, B = ("shop", "a"), ("shop", "b")
LONG = timedelta(hours=1)
SOON = timedelta(0)
STOP, PAUSE, INTERVAL, DDL = FlushReason.STOP, FlushReason.PAUSE, FlushReason.INTERVAL, FlushReason.DDL


def at(offset):
    return Point(Position(1, "binlog.000001", offset))


class Recorder:
    """A writer that records its calls."""

    def __init__(self, error=None):
        self.written = []
        self.error = error
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def write(self, snapshot, changed, reason):
        self.reached.set()
        assert self.gate.wait(10)
        if self.error:
            raise self.error
        self.written.append((reason, snapshot, [table.name for table in changed]))

    @property
    def reasons(self):
        return [reason for reason, _, _ in self.written]


def stored(reason):
    return StoredPoints(1, reason, at(100), {}, None)


def apply(points, end, *names, version=1):
    points.hand_over(at(end), set(names))
    for name in names:
        points.applied(TablePoint(*name, at(end), version))


@pytest.fixture
def opened():
    """Creates flushers that are ended after the test."""
    made = []

    def make(points, recorder, *, before=None, interval=LONG):
        flusher = Flusher(recorder, points, before, interval, SOON)
        flusher.start()
        made.append((flusher, recorder))
        return flusher

    yield make
    for flusher, recorder in made:
        recorder.gate.set()
        recorder.error = None
        flusher._failure = None
        flusher.end(STOP)


def test_the_interval_flushes_changed_points(opened):
    """The thread writes changed points once per interval, without a request."""
    points, recorder = Points("s"), Recorder()
    apply(points, 100, A)
    opened(Points("idle"), idle := Recorder(), interval=timedelta(milliseconds=5))
    flusher = opened(points, recorder, before=None, interval=timedelta(milliseconds=5))
    apply(points, 200, B)
    assert recorder.reached.wait(10)
    flusher.end(STOP)
    assert recorder.reasons == [INTERVAL, STOP]
    reason, snapshot, changed = recorder.written[0]
    assert (reason, snapshot.global_point, changed) == (INTERVAL, at(200), [B])
    assert not idle.written


def test_a_shorter_interval_wakes_a_long_wait(opened):
    """It takes effect at once, not after the long interval; and again when it is changed back."""
    points, recorder = Points("s"), Recorder()
    apply(points, 100, A)
    flusher = opened(points, recorder)
    apply(points, 200, A, version=2)
    assert not recorder.reached.wait(0.2)
    flusher.change_interval(timedelta(milliseconds=10))
    assert recorder.reached.wait(10)
    flusher.change_interval(LONG)
    flusher.request(DDL)  # ends a wait for the short interval that may have started
    time.sleep(0.1)
    recorder.reached.clear()
    apply(points, 300, A, version=3)
    assert not recorder.reached.wait(0.3)
    assert recorder.reasons == [INTERVAL]


def test_elapsed_time_counts_for_the_new_interval(opened):
    """If the new interval has already elapsed, the flush happens at once."""
    points, recorder = Points("s"), Recorder()
    flusher = opened(points, recorder)
    apply(points, 100, A)
    time.sleep(0.5)
    began = time.monotonic()
    flusher.change_interval(timedelta(seconds=0.4))
    assert recorder.reached.wait(10)
    assert time.monotonic() - began < 0.4


def test_a_request_flushes_without_blocking(opened):
    """A DDL requests a flush; the applier continues while the write is in progress."""
    points, recorder = Points("s"), Recorder()
    flusher = opened(points, recorder)
    recorder.gate.clear()
    apply(points, 100, A)
    flusher.request(DDL)
    assert recorder.reached.wait(10)
    apply(points, 200, A, version=2)  # not blocked by the write
    assert not recorder.written
    recorder.gate.set()
    flusher.end(STOP)
    assert [(reason, snapshot.global_point) for reason, snapshot, _ in recorder.written] == [
        (DDL, at(100)),
        (STOP, at(200)),
    ]


def test_concurrent_requests_make_one_flush():
    """DDL of several tables within the gathering time is written once."""
    points, recorder = Points("s"), Recorder()
    flusher = Flusher(recorder, points, None, LONG, timedelta(milliseconds=200))
    flusher.start()
    apply(points, 100, A)
    flusher.request(DDL)
    apply(points, 200, B)
    flusher.request(DDL)
    assert recorder.reached.wait(10)
    flusher.end(STOP)
    assert [(reason, snapshot.global_point) for reason, snapshot, _ in recorder.written] == [
        (DDL, at(200)),
        (STOP, at(200)),
    ]


def test_unchanged_points_are_not_written(opened):
    """A request without changes writes nothing, and neither does the end of a run that applied nothing."""
    recorder = Recorder()
    flusher = opened(Points("s", stored(STOP)), recorder, before=stored(STOP))
    flusher.request(DDL)
    flusher.end(STOP)
    assert not recorder.written


def test_a_run_that_applied_nothing_leaves_no_record(opened):
    """A task that has never applied anything writes no checkpoint at its end."""
    recorder = Recorder()
    opened(Points("s"), recorder).end(STOP)
    assert not recorder.written


def test_a_stop_is_written_even_if_the_points_are_unchanged(opened):
    """The record must say that the run ended in an orderly way, without an exit point."""
    points, recorder = Points("s"), Recorder()
    flusher = opened(points, recorder)
    apply(points, 100, A)
    flusher.request(INTERVAL)
    assert recorder.reached.wait(10)
    flusher.end(STOP)
    assert [(reason, snapshot.exit_point) for reason, snapshot, _ in recorder.written] == [
        (INTERVAL, at(100)),
        (STOP, None),
    ]


def test_an_error_leaves_the_exit_point(opened):
    """PAUSE records the end of the handed-over ranges, although they were not applied."""
    points, recorder = Points("s", stored(INTERVAL)), Recorder()
    flusher = opened(points, recorder, before=stored(INTERVAL))
    points.hand_over(at(300), {A})
    flusher.end(PAUSE)
    ((reason, snapshot, changed),) = recorder.written
    assert (reason, snapshot.global_point, snapshot.exit_point, changed) == (PAUSE, at(100), at(300), [])


@pytest.mark.parametrize(("before", "marks"), [(STOP, 1), (PAUSE, 1), (INTERVAL, 0), (DDL, 0), (None, 0)])
def test_a_new_run_is_recorded_once_before_it_applies(opened, before, marks):
    """Otherwise a crash before the first flush would look like the previous stop."""
    record = stored(before) if before else None
    recorder = Recorder()
    points = Points("s", record)
    opened(points, recorder, before=record)
    assert not recorder.written
    points.hand_over(at(300), {A})
    points.hand_over(at(300), {A})
    assert recorder.reasons == [INTERVAL] * marks
    assert all(snapshot.exit_point == at(300) for _, snapshot, _ in recorder.written)


@pytest.mark.parametrize("call", ["check", "request", "end", "hand_over"])
def test_a_failed_flush_is_raised_at_the_next_call(call):
    """No error of the flush thread is lost."""
    points = Points("s")
    recorder = Recorder(LakehouseError("disk full"))
    flusher = Flusher(recorder, points, None, LONG, SOON)
    flusher.start()
    apply(points, 100, A)
    flusher.request(DDL)
    flusher._thread.join(10)
    calls = {
        "check": flusher.check,
        "request": lambda: flusher.request(INTERVAL),
        "end": lambda: flusher.end(STOP),
        "hand_over": lambda: points.hand_over(at(200), {A}),
    }
    with pytest.raises(LakehouseError, match="disk full"):
        calls[call]()


def test_a_failed_last_flush_is_raised():
    """The flush that ends a run raises in the caller."""
    points = Points("s")
    flusher = Flusher(Recorder(LakehouseError("disk full")), points, None, LONG)
    flusher.start()
    apply(points, 100, A)
    with pytest.raises(LakehouseError, match="disk full"):
        flusher.end(STOP)


@pytest.mark.parametrize("hangs", ["requested", "last", "hand-over"])
def test_a_run_ends_although_a_write_hangs(monkeypatch, hangs):
    """In the flush thread, or in an applier's that records that a new run has started."""
    monkeypatch.setattr("dmdelta.checkpoint.flusher.END_SECONDS", 0.3)
    record = stored(STOP) if hangs == "hand-over" else None
    points, recorder = Points("s", record), Recorder()
    recorder.gate.clear()
    flusher = Flusher(recorder, points, record, LONG, SOON)
    flusher.start()
    applier = threading.Thread(target=apply, args=(points, 300, A))
    applier.start()
    if hangs == "requested":
        flusher.request(DDL)
    if hangs != "last":
        assert recorder.reached.wait(10)
    with pytest.raises(StageFailed, match="the checkpoint write did not end") as raised:
        flusher.end(STOP)
    assert "no data is lost" in raised.value.hint
    assert not recorder.written
    recorder.gate.set()
    applier.join(10)
    flusher._thread.join(10)
    assert recorder.reasons == {"requested": [DDL, STOP], "last": [STOP], "hand-over": [INTERVAL]}[hangs]


@pytest.mark.parametrize(
    ("before", "exit_point", "reason", "written"),
    [
        (STOP, None, STOP, []),
        (STOP, None, PAUSE, [PAUSE]),
        (PAUSE, None, STOP, [STOP]),
        (STOP, at(90), STOP, [STOP]),
        (STOP, at(90), PAUSE, [PAUSE]),
    ],
)
def test_an_end_that_says_something_new_is_written(opened, before, exit_point, reason, written):
    """No point has moved since the last flush, but the reason or the exit point differs."""
    points, recorder = Points("s"), Recorder()
    apply(points, 100, A)
    flushed = StoredPoints(1, before, at(100), {A: TablePoint(*A, at(100), 1)}, exit_point)
    opened(points, recorder, before=flushed).end(reason)
    assert recorder.reasons == written
