"""The sink's slices without Spark and without a server: when the checkpoint is written with `flush: sync`."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dmdelta.errors import SinkError
from dmdelta.model.position import Position
from dmdelta.sink.careful import Caution
from dmdelta.sink.change import Act, Change, Shape
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.purger import Purger
from dmdelta.sink.execute.worker import Worker
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.held_shards import HeldShards
from dmdelta.sink.plan.checkpoint import Checkpoint
from dmdelta.sink.plan.safe_mode import SafeMode
from dmdelta.sink.read.slices import Cut, Survey
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.sink import Sink
from dmdelta.sink.statements import Statements
from dmdelta.sink.target.connection import TargetServer

ALWAYS, NEVER = 0.0, 3600.0
SERVER = TargetServer("127.0.0.1", 1, "u", "p")
TABLE = Shape("`d`.`t`", "(id)", "", "id")
SOURCE = SimpleNamespace(source_id="s1", rules=SimpleNamespace(operators={}))


def at(offset, *, file=1, epoch=1):
    return Position(epoch, f"binlog.{file:06d}", offset)


class Reader:
    """One change in each slice of 100 bytes. `reading` is called with the end of each slice that is read."""

    def __init__(self):
        self.read_to, self.reading = [], lambda end: None
        self.log = SimpleNamespace(
            survey=lambda begin, end: Survey(
                begin, end, (), [Cut(at(offset), True) for offset in range(begin.offset + 100, end.offset, 100)], ()
            )
        )

    def read(self, part):
        self.reading(part.end)
        self.read_to.append(part.end)
        plan = SimpleNamespace(shape=TABLE, source=("d", "t"), schema=SimpleNamespace(name=("d", "t")), keys=("id",))
        return [[SimpleNamespace(plan=plan, seq=part.begin.seq, moves_unknown=False)]]


class Run:
    """A sink whose two workers only list what they execute."""

    def __init__(self, *, synchronous, interval):
        self.executed, self.happened, self.ended = [], [], False
        settings = SinkSettings(SERVER, workers=2, synchronous=synchronous, flush_interval=interval)
        snapshots, progress = Snapshots(2, "s1"), Progress()
        self.dispatcher = Dispatcher([], Causality(2), snapshots, 10)
        fail, metadata = self.dispatcher.fail, SimpleNamespace(source_id="s1")
        self.flusher = Flusher(None, metadata, snapshots, progress, interval, fail)
        self.dispatcher.begin([Worker(n, None, None, snapshots.receive, fail) for n in range(2)])
        self.reader = Reader()
        caution, reloader = Caution(SafeMode(), ordered=False, fresh=set()), SimpleNamespace(done={})
        statements = Statements(SOURCE, self.reader.log, None, progress, self.flusher)
        self.sink = Sink(
            source=SOURCE,
            settings=settings,
            reader=self.reader,
            tables=SimpleNamespace(fresh=set(), close=lambda: None),
            dispatcher=self.dispatcher,
            execution=SimpleNamespace(ordered=False, execute=self.dispatch),
            flusher=self.flusher,
            progress=progress,
            purger=Purger(self.dispatcher.causality, snapshots, fail),
            executed=ExecutedEvents(),
            caution=caution,
            reloader=reloader,
            statements=statements,
            shards=HeldShards(None, statements, reloader, caution, ReloadFeed()),
            proven=True,
            position=None,
        )

    def dispatch(self, groups):
        for (one,) in groups:
            key = str(one.seq)
            change = Change(Act.INSERT, key, None, f"({key})", None, (key,), ((one.seq, 0),))
            self.dispatcher.dispatch(TABLE, [change])

    def apply(self, begin, end):
        assert self.sink.apply(at(begin), at(end), lambda: False)

    def end(self):
        if not self.ended:
            self.ended = True
            assert self.sink.end(orderly=True)
            assert self.dispatcher.failure is None

    def work(self, batch):
        self.executed += [change.events[0][0] for _, change in batch.work.changes]

    def write(self, checkpoint):
        """Records for each checkpoint its position, and what was read and executed by then."""
        self.happened.append((checkpoint.position, self.reader.read_to[-1:], len(self.executed)))
        return 0


@pytest.fixture
def opened(monkeypatch):
    made = []

    def make(**settings):
        made.append(Run(**settings))
        return made[-1]

    monkeypatch.setattr(Worker, "_transaction", lambda self, batch: made[-1].work(batch))
    monkeypatch.setattr(Flusher, "_transaction", lambda self, checkpoint: made[-1].write(checkpoint))
    yield make
    for run in made:
        run.end()


def test_all_work_waits_for_a_synchronous_flush(opened):
    """After a slice, all changes are executed and the checkpoint is written before the next slice is read."""
    run = opened(synchronous=True, interval=ALWAYS)
    run.apply(4, 304)
    assert run.happened == [(at(104), [at(104)], 1), (at(204), [at(204)], 2), (at(304), [at(304)], 3)]
    metrics = run.sink.metrics()
    assert (metrics.pushed, metrics.ready, metrics.flushed) == (at(304), at(304), at(304))
    assert (metrics.flushes, metrics.flushed_spans.times, metrics.resets) == (3, 3, 3)
    assert metrics.ready_spans.times == 6, "each slice has a mark, and each flush drains the workers with another"


def test_no_flush_before_the_interval_has_passed(opened):
    """The slices follow each other without a checkpoint; the end of the run writes it."""
    run = opened(synchronous=True, interval=NEVER)
    run.apply(4, 304)
    assert run.happened == []
    run.sink.flush_if_due()
    assert run.happened == []
    run.end()
    assert run.happened == [(at(304), [at(304)], 3)]


def test_the_interval_of_synchronous_flushes_is_changed_at_run_time(opened):
    """While the second of three slices is read, the interval becomes short: its end and the next one are flushed."""
    run = opened(synchronous=True, interval=NEVER)

    def change(end):
        if end == at(204):
            run.flusher.interval = ALWAYS

    run.reader.reading = change
    run.apply(4, 304)
    assert [position for position, _, _ in run.happened] == [at(204), at(304)]
    run.flusher.interval = NEVER
    run.apply(304, 404)
    assert run.happened[-1][0] == at(304)


def test_an_idle_source_is_flushed_as_well(opened):
    """No slice follows: what was executed reaches the checkpoint once the interval has passed, and only once."""
    run = opened(synchronous=True, interval=NEVER)
    run.apply(4, 104)
    run.flusher.interval = ALWAYS
    run.sink.flush_if_due()
    run.sink.flush_if_due()
    assert run.happened == [(at(104), [at(104)], 1)]
    assert run.sink.metrics().resets == 1


def test_an_asynchronous_sink_leaves_flushes_to_the_flusher(opened):
    """Neither slices nor an idle source write, even with a short interval; the positions differ until then."""
    run = opened(synchronous=False, interval=ALWAYS)
    run.apply(4, 304)
    run.sink.flush_if_due()
    assert run.happened == []
    assert run.dispatcher.snapshots.wait_for(3, 30.0)
    metrics = run.sink.metrics()
    assert (metrics.pushed, metrics.ready, metrics.flushed) == (at(304), at(304), None)
    assert (metrics.keys, metrics.keys_added, metrics.keys_waiting) == (3, 3, 3)
    run.flusher.flush_ready()
    assert run.sink.metrics().flushed == at(304)


def test_positions_of_a_checkpoint_without_a_snapshot(opened):
    """Positions up to the checkpoint of a statement, or of an earlier run, count as pushed and ready."""
    run = opened(synchronous=False, interval=NEVER)
    assert (run.sink.metrics().pushed, run.sink.metrics().ready) == (None, None)
    run.apply(4, 104)
    assert run.dispatcher.snapshots.wait_for(1, 30.0)
    run.sink.progress.raise_exit_point(at(105))
    run.flusher.write(Checkpoint(at(105), at(105), reason="ddl"))
    metrics = run.sink.metrics()
    assert (metrics.pushed, metrics.ready, metrics.flushed) == (at(105), at(105), at(105))


@pytest.mark.parametrize("begin", [at(305), at(304, file=2), at(4, file=3)])
def test_a_gap_in_the_log_stops_the_sink(opened, begin):
    """A range behind the position is refused: what lies between would never be executed."""
    run = opened(synchronous=False, interval=NEVER)
    run.apply(4, 304)
    with pytest.raises(SinkError, match="begins at"):
        run.sink.apply(begin, replace(begin, offset=504), lambda: False)
    assert run.sink.position == at(304)


@pytest.mark.parametrize("begin", [at(204), at(304), at(4, file=2), at(777, epoch=2)])
def test_a_range_that_joins(opened, begin):
    """A range may begin before or at the position, with the next file, or anywhere in a new epoch."""
    run, end = opened(synchronous=False, interval=NEVER), replace(begin, offset=1004)
    run.apply(4, 304)
    assert run.sink.apply(begin, end, lambda: False)
    assert run.sink.position == end


@pytest.mark.parametrize("begin", [at(4, file=2), at(777, epoch=2)])
def test_no_range_joins_one_that_was_left(opened, begin):
    """The sink stopped within a range: not even the next file or epoch follows it."""
    run = opened(synchronous=False, interval=NEVER)
    assert not run.sink.apply(at(4), at(304), lambda: True)
    with pytest.raises(SinkError, match="begins at"):
        run.sink.apply(begin, replace(begin, offset=1004), lambda: False)
    run.apply(4, 304)
    assert run.sink.apply(begin, replace(begin, offset=1004), lambda: False)
