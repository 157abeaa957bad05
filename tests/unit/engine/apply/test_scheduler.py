"""The scheduler of a source's tables: turns, renames, pauses, and what it reports. Real threads, no Spark."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.checkpoint import Points, TablePoint
from dmdelta.engine.apply import scheduler as module
from dmdelta.engine.apply.scheduler import TableScheduler
from dmdelta.engine.apply.table_state import Phase, TableStates
from dmdelta.engine.apply.writer import point_of
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import LakehouseError, SchemaError
from dmdelta.model.change import Op
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import ApplyResult
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents

SECONDS = 20.0
RENAME = "RENAME TABLE a TO tmp, b TO a, tmp TO b"


def name_of(table):
    return ("shop", table)


def at(offset):
    return Position(1, "binlog.000001", offset)


def landed(number):
    return LandedRange(number, at(100 * number), at(100 * number + 100), parse_gtid_set("", "mysql"))


@dataclass
class Tables:
    """Stands in for `TableApply`: records what is applied, and holds or fails tables."""

    context: object
    points: Points = field(default_factory=lambda: Points("s"))
    states: TableStates = field(default_factory=TableStates)
    applied: list = field(default_factory=list)
    failures: dict = field(default_factory=dict)
    waits: dict = field(default_factory=dict)
    held: dict = field(default_factory=dict)
    begun: dict = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    writing: list = field(default_factory=list)
    collisions: list = field(default_factory=list)
    counters: RunCounters = field(default_factory=lambda: RunCounters(lambda _: None))

    @property
    def requests(self):
        return SimpleNamespace(states=self.states)

    def hold(self, table):
        """The next turns of a table wait at their start."""
        self.held[table], self.begun[table] = threading.Event(), threading.Event()

    def apply(self, tables, landed):
        names = [table.name for table in tables]
        targets = {self.context.table(name).route.name for name in names}
        with self.lock:
            self.collisions += [names] if any(targets & others for others in self.writing) else []
            self.writing.append(targets)
        try:
            for _, table in names:
                if table in self.held:
                    self.begun[table].set()
                    assert self.held[table].wait(SECONDS)
                if table in self.failures:
                    raise self.failures.pop(table)
            with self.lock:
                self.applied.append(
                    (tuple(table for _, table in sorted(names)), landed.begin, landed.end, landed.batch)
                )
        finally:
            with self.lock:
                self.writing.remove(targets)
        for name in names:
            waits = self.waits.pop(name[1], None)
            end = landed.end if waits is None else waits.position
            self.points.applied(TablePoint(*name, point_of(landed) if waits is None else SimpleNamespace(position=end)))
            yield ApplyResult(*name, end, {Op.INSERT: 1}, (), commit=None, structure=None, waits=waits)

    def resume(self, name, landed):
        yield from self.apply([TableEvents(*name, {}, landed.begin, landed.end)], landed)

    def of(self, table):
        """The turns of a table, in order: (begin, end)."""
        return [(begin.offset, end.offset) for names, begin, end, _ in self.applied if table in names]


class Source:
    """A scheduler, and ranges for it."""

    def __init__(self, monkeypatch):
        self.events = {}
        merged = {"part_1", "part_2"}

        def table(name):
            target = "all" if name[1] in merged else name[1]
            route = SimpleNamespace(name=("shop", target))
            return SimpleNamespace(merged=name[1] in merged, route=route)

        self.released = {}
        context = SimpleNamespace(
            source_id="s",
            flavor="mysql",
            lakehouse=None,
            table=table,
            rules=SimpleNamespace(wanted=lambda *_: True),
            shards=SimpleNamespace(released=lambda _: self.released),
        )
        self.tables, self.stop = Tables(context), StopRequest()
        self.scheduler = TableScheduler(None, self.tables, None)
        monkeypatch.setattr(module, "tables_with_events", lambda *found: self.events[found[2]])

    def hand_over(self, number, *tables, renames=False, ddl=False):
        """A range in which each of the tables has a row."""
        begin, rows = at(100 * number), {Op.INSERT: 1}
        texts = {"a": RENAME, "b": RENAME} if renames else {"a": "ALTER TABLE a ADD x INT"} if ddl else {}
        statements = {table: (StructureEvent(begin, 0, Op.DDL, text),) for table, text in texts.items()}
        self.events[begin] = [
            TableEvents("shop", table, rows, begin, begin, statements.get(table, ())) for table in tables
        ]
        self.scheduler.hand_over(landed(number))

    def wait_until(self, holds):
        with self.scheduler._changed:
            assert self.scheduler._changed.wait_for(holds, SECONDS), self.tables.applied

    def wait_idle(self):
        self.wait_until(lambda: self.scheduler.is_idle)

    @contextmanager
    def writing(self):
        with self.scheduler.writing(self.stop):
            yield

    def phase(self, table):
        return self.tables.states.of(name_of(table)).phase

    def ends(self):
        """The ends of the ranges that are reported as applied since the last call."""
        return [applied.landed.end.offset for applied in self.scheduler.take_applied()]


@pytest.fixture
def source(monkeypatch):
    return Source(monkeypatch)


def test_a_slow_table_holds_neither_the_others_nor_their_next_ranges(source):
    """Its next turn joins the accumulated ranges. Ranges are reported in order, once every table has applied them."""
    source.tables.hold("slow")
    with source.writing():
        source.hand_over(1, "slow", "fast")
        assert source.tables.begun["slow"].wait(SECONDS)
        for number in (2, 3, 4):
            source.hand_over(number, "slow", "fast")
            source.wait_until(
                lambda number=number: source.tables.of("fast")[-1:] == [(100 * number, 100 * number + 100)]
            )
        source.hand_over(5, "fast")
        source.wait_until(lambda: len(source.tables.of("fast")) == 5)
        assert (source.ends(), source.tables.points.reached.offset) == ([], 0)
        source.tables.held["slow"].set()
        source.wait_idle()
    assert source.tables.of("slow") == [(100, 200), (200, 500)]
    assert [batch for names, *_, batch in source.tables.applied if "slow" in names] == [1, 4]
    assert (source.ends(), source.tables.points.reached) == ([200, 300, 400, 500, 600], at(600))


def test_nothing_is_applied_outside_the_block(source):
    """At its end, running turns finish and no other turn starts."""
    source.hand_over(1, "a")
    assert source.tables.applied == []
    source.tables.hold("a")
    with source.writing():
        assert source.tables.begun["a"].wait(SECONDS)
        source.hand_over(2, "a")
        source.stop.request()
        source.tables.held["a"].set()
    assert source.tables.of("a") == [(100, 200)]
    assert not source.scheduler.is_idle


def test_a_rename_is_a_barrier_for_its_tables_alone(source):
    """They drain up to the range, apply it together, and continue; another table is not affected."""
    source.tables.hold("a")
    with source.writing():
        source.hand_over(1, "a", "b", "c")
        assert source.tables.begun["a"].wait(SECONDS)
        source.hand_over(2, "a", "b", "c", renames=True)
        source.hand_over(3, "a", "b", "c")
        source.wait_until(lambda: source.tables.of("c")[-1:] in ([(300, 400)], [(200, 400)]))
        assert source.tables.of("b") == [(100, 200)]
        source.tables.held["a"].set()
        source.wait_idle()
    assert source.tables.of("a") == source.tables.of("b") == [(100, 200), (200, 300), (300, 400)]
    assert (("a", "b"), at(200), at(300), 2) in source.tables.applied
    assert source.ends() == [200, 300, 400]


def test_a_rename_does_not_wait_for_a_held_table(source):
    with source.writing():
        source.hand_over(1, "a", "b")
        source.wait_idle()
        source.scheduler.pause_tables([name_of("a")])
        source.hand_over(2, "a", "b", renames=True)
        source.wait_idle()
    assert source.tables.of("b") == [(100, 200), (200, 300)]
    assert source.tables.of("a") == [(100, 200)]


def test_a_rename_waits_for_maintenance(source):
    with source.writing():
        with source.scheduler.maintenance(name_of("a"), source.stop) as paused:
            assert paused
            source.hand_over(2, "a", "b", renames=True)
            source.hand_over(3, "c")
            source.wait_until(lambda: source.tables.of("c") == [(300, 400)])
            assert source.tables.of("b") == []
        source.wait_idle()
    assert source.tables.applied[-1] == (("a", "b"), at(200), at(300), 2)


def test_shards_of_a_merged_table_are_not_written_at_once(source):
    with source.writing():
        for number in range(1, 8):
            source.hand_over(number, "part_1", "part_2", "a")
        source.wait_idle()
    assert source.tables.collisions == []
    assert source.tables.of("part_1")[-1][1] == source.tables.of("part_2")[-1][1] == 800


def test_a_paused_table_is_left_out_and_resumes_where_its_log_continues(source):
    """With one range of unknown events. Meanwhile ranges are reported without it, but the checkpoint waits for it."""
    source.tables.hold("a")
    with source.writing():
        source.hand_over(1, "a", "b")
        assert source.tables.begun["a"].wait(SECONDS)
        pausing = threading.Thread(target=source.scheduler.pause_tables, args=([name_of("a")],))
        pausing.start()
        source.wait_until(lambda: source.phase("a") is Phase.SNAPSHOT)
        assert pausing.is_alive()  # for the running turn
        source.tables.held["a"].set()
        pausing.join(SECONDS)
        for number in (2, 3, 4):
            source.hand_over(number, "a", "b")
        source.wait_idle()
        assert (source.ends(), source.tables.points.reached) == ([200, 300, 400, 500], at(200))
        assert source.tables.states.held == {name_of("a")}
        source.tables.hold("a")
        source.scheduler.resume_tables({name_of("a"): at(350)})
        assert source.tables.begun["a"].wait(SECONDS)
        assert (source.phase("a"), source.tables.states.held) == (Phase.FOLLOWING, {name_of("a")})
        source.tables.held["a"].set()
        source.wait_idle()
    assert source.tables.of("a") == [(100, 200), (350, 500)]
    assert (source.tables.states.held, source.tables.points.reached) == (set(), at(500))


@pytest.mark.parametrize("error", [None, LakehouseError("refused", hint="grant it")])
def test_a_pause_waits_for_maintenance(source, error):
    """Also if it fails: the snapshot's commit and those of the maintenance do not overlap."""
    pausing = threading.Thread(target=source.scheduler.pause_tables, args=([name_of("a")],), daemon=True)
    with suppress(LakehouseError), source.scheduler.maintenance(name_of("a"), source.stop):
        pausing.start()
        source.wait_until(lambda: source.phase("a") is Phase.SNAPSHOT)
        pausing.join(0.2)
        assert pausing.is_alive()
        if error is not None:
            raise error
    pausing.join(SECONDS)
    assert not pausing.is_alive()
    assert source.phase("a") is Phase.SNAPSHOT


def test_ranges_accumulate_during_maintenance(source):
    """The table keeps them, so it continues without a gap; the ranges are reported without it."""
    with source.writing():
        source.hand_over(1, "a", "b")
        source.wait_idle()
        with source.scheduler.maintenance(name_of("a"), source.stop) as paused:
            assert paused
            for number in (2, 3):
                source.hand_over(number, "a", "b")
            source.wait_until(lambda: source.tables.of("b")[-1][1] == 400)
            source.wait_until(lambda: source.scheduler._running == [])
            assert (source.ends(), source.tables.of("a")) == ([200, 300, 400], [(100, 200)])
        source.wait_idle()
    assert source.tables.of("a") == [(100, 200), (200, 400)]
    assert (source.tables.states.held, source.tables.points.reached) == (set(), at(400))


def test_a_table_that_does_not_follow_is_not_maintained(source):
    source.scheduler.pause_tables([name_of("a")])
    with source.scheduler.maintenance(name_of("a"), source.stop) as paused:
        assert not paused
    assert source.phase("a") is Phase.SNAPSHOT


def test_a_table_that_silver_cannot_follow_stops_alone(source):
    source.tables.failures["a"] = SchemaError("an unknown type", hint="take a snapshot")
    with source.writing():
        source.hand_over(1, "a", "b")
        source.wait_idle()
        source.hand_over(2, "a", "b")
        source.wait_idle()
        source.scheduler.check()
    assert (source.phase("a"), source.tables.of("a"), source.tables.of("b")[-1][1]) == (Phase.STOPPED, [], 300)
    assert (source.ends(), source.tables.points.reached.offset) == ([200, 300], 0)


def test_a_stopped_table_is_reloaded_in_its_first_turn(source):
    """If it stops again, nothing is applied to it."""
    reloaded, error = [], SchemaError("other columns", hint="ALTER them")
    with source.writing():
        source.hand_over(1, "a")
        source.wait_idle()

        def reload():
            reloaded.append(len(reloaded))
            if len(reloaded) == 1:
                source.scheduler.stop_tables([name_of("a")], error, reload=reload)

        source.scheduler.pause_tables([name_of("a")])
        source.scheduler.stop_tables([name_of("a")], error, reload=reload)
        source.hand_over(2, "a")
        for times in (1, 2):
            source.released = {name_of("a"): at(150)}
            source.scheduler.resume_released()
            source.wait_idle()
            assert len(reloaded) == times
            assert (source.phase("a") is Phase.STOPPED) == (times == 1)
    assert source.tables.of("a") == [(100, 200), (150, 300)]


def test_a_waiting_shard_resumes_at_its_statement(source):
    source.tables.waits["part_1"] = SimpleNamespace(position=at(130))
    with source.writing():
        source.hand_over(1, "part_1", "a")
        source.wait_idle()
        source.hand_over(2, "part_1", "a")
        source.wait_idle()
        assert (source.phase("part_1"), source.ends()) == (Phase.WAITING, [200, 300])
        source.released = {name_of("part_1"): at(130), name_of("a"): at(1)}
        source.scheduler.resume_released()
        source.wait_idle()
    assert source.tables.of("part_1") == [(100, 200), (130, 300)]
    assert source.tables.states.of(name_of("part_1")).resync_until == at(300)
    assert source.tables.of("a") == [(100, 200), (200, 300)]


def test_a_shard_that_a_snapshot_pauses_while_it_is_released_is_not_resumed(source):
    """The snapshot reads it from then on: its rows replace the shard's, and its end resumes the shard."""
    shard, changed = name_of("part_1"), source.scheduler._changed
    pausing = threading.Thread(target=source.scheduler.pause_tables, args=([shard],), daemon=True)

    def released(_source_id):
        """A snapshot begins while the released shards are looked up."""
        with ThreadPoolExecutor(1) as pool:  # another thread: the lock is reentrant
            may_pause = pool.submit(changed.acquire, blocking=False).result(SECONDS)
            if may_pause:
                pool.submit(changed.release).result(SECONDS)
        pausing.start()
        if may_pause:
            pausing.join(SECONDS)
        return {shard: at(150)}

    source.scheduler.stop_tables([shard], SchemaError("other columns", hint="ALTER them"))
    source.tables.context.shards.released = released
    source.scheduler.resume_released()
    pausing.join(SECONDS)
    assert not pausing.is_alive()
    assert (source.phase("part_1"), source.scheduler.is_idle) == (Phase.SNAPSHOT, True)


def test_a_shard_that_waits_during_the_full_load_resumes_with_a_range_of_each_epoch(source):
    """The rows that the load read, then the log: each with the number of its own last batch."""
    load = [Position.of_chunk(1, number) for number in (1, 2, 3)]
    log = [Position(2, "binlog.000001", offset) for offset in (100, 200)]
    gtids = parse_gtid_set("", "mysql")
    ranges = [LandedRange(1, *load[:2], gtids), LandedRange(2, *load[1:], gtids), LandedRange(4, *log, gtids)]
    source.tables.waits["part_1"] = SimpleNamespace(position=load[0])
    with source.writing():
        for each in ranges:
            source.events[each.begin] = [TableEvents("shop", "part_1", {Op.INSERT: 1}, each.begin, each.begin)]
            source.scheduler.hand_over(each)
            source.wait_idle()
        source.released = {name_of("part_1"): load[0]}
        source.scheduler.resume_released()
        source.wait_idle()
    part = ("part_1",)
    assert source.tables.applied[1:] == [(part, load[0], load[2], 2), (part, *log, 4)]
    assert source.tables.states.of(name_of("part_1")).resync_until == log[1]
    assert source.tables.states.held == set()


def test_another_error_ends_the_turns_after_the_running_ones(source):
    source.tables.failures["a"] = LakehouseError("the storage is full", hint="free space")
    source.tables.hold("b")
    with pytest.raises(LakehouseError, match="storage"), source.writing():  # noqa: PT012 - the block is what ends
        source.hand_over(1, "a", "b")
        source.wait_until(lambda: source.scheduler._failure is not None)
        source.hand_over(2, "a", "b")
        source.tables.held["b"].set()
        source.scheduler.check()
    assert (source.tables.of("a"), source.tables.of("b")) == ([], [(100, 200)])


def test_a_table_that_resumes_before_the_first_range_takes_it_with_the_others(source):
    source.scheduler.pause_tables([name_of("a")])
    source.scheduler.resume_tables({name_of("a"): at(150)})
    source.hand_over(1, "a", "b")
    with source.writing():
        source.wait_idle()
    assert source.tables.of("a")[-1][1] == 200
    assert source.tables.states.held == set()


def test_the_reported_range_has_its_tables_and_statements(source):
    with source.writing():
        source.hand_over(1, "a", "b")
        source.hand_over(2, "a", ddl=True)
        source.hand_over(3)
        source.wait_idle()
    assert [(each.tables, each.ddl) for each in source.scheduler.take_applied()] == [(2, False), (1, True), (0, False)]


def test_no_more_ranges_are_taken_if_tables_are_far_behind(source, monkeypatch):
    monkeypatch.setattr(module, "AHEAD_BYTES", 150)
    source.hand_over(1, "a")
    assert source.scheduler.has_room
    source.hand_over(2, "a")
    assert not source.scheduler.has_room
    with source.writing():
        source.wait_idle()
    source.scheduler.take_applied()
    assert source.scheduler.has_room
