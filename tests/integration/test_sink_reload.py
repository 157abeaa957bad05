"""Ad-hoc snapshots in the sink, on real servers without Spark: order, waiting, and ends in the middle of a reload."""

import threading
from dataclasses import replace

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES
from dmdelta.sink.plan.reload import AdHocState, Reload
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.reloader import Reloader
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.startup import open_sink
from tests.support.sink_log import HandLog, use
from tests.support.sinking import target_of

WAIT = 30.0


def at(offset):
    return Position(1, "binlog.000001", offset)


class Hand:
    """Runs of a sink over a given log."""

    def __init__(self, server, folder, **settings):
        self.server, self.folder, self.runs = server, folder, 0
        self.database = server.fresh_database("hand")
        server.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE bag (id INT, v INT)", database=self.database
        )
        self.log = HandLog(self.database, keyless=("bag",))
        self.settings = SinkSettings(target_of(server), f"dm_{self.database}", 2, flush_interval=600.0, **settings)

    def open(self, feed):
        self.runs += 1
        lakehouse = Lakehouse(root=str(self.folder))
        source = SourceContext(lakehouse, "task", "s1", f"run-{self.runs}", "mysql", NO_RULES)
        sink = open_sink(None, source, self.settings, None, feed)
        use(sink, self.log)
        return sink

    def name(self, table):
        return (self.database, table)

    def reloads(self, *positions, safe_until=None):
        tables = ("t", "bag")
        return tuple(
            Reload(self.name(table), -1, at(offset), safe_until)
            for table, offset in zip(tables, positions, strict=True)
        )

    def rows(self, table):
        return list(self.server.query(f"SELECT id, v FROM {table} ORDER BY id, v", self.database))


@pytest.fixture(params=["mariadb", pytest.param("mysql80_too", marks=pytest.mark.long)])
def hand(request, tmp_path):
    made = Hand(request.getfixturevalue(request.param), tmp_path)
    log = made.log
    log.log(100, "t", "insert", 1, 10)
    log.log(110, "bag", "insert", 1, 1)
    log.log(120, "bag", "insert", 1, 1)
    log.log(200, "t", "insert", 2, 20)
    log.log(210, "bag", "delete", 1, 1)
    log.log(220, "bag", "insert", 3, 3)
    log.log(300, "t", "update", 1, 11)
    log.log(310, "bag", "insert", 4, 4)
    log.snapshot(-1, 1, "t", {1: 10, 7: 70})
    log.snapshot(-1, 2, "bag", {1: 1, 5: 5})
    return made


T_ROWS = [(1, 11), (2, 20), (7, 70)]
"""The rows of the snapshot with the log from 200 on; row 7 is one that the target lacked."""
BAG_ROWS = [(3, 3), (4, 4), (5, 5)]


def finish(sink, end=400, stopping=lambda: False):
    try:
        done = sink.apply(at(4), at(end), stopping)
    except BaseException:
        sink.end(orderly=False)
        raise
    sink.end(orderly=True)
    return done


def damage(hand):
    hand.server.execute("INSERT INTO t VALUES (9, 9)", "INSERT INTO bag VALUES (9, 9)", database=hand.database)


@pytest.mark.parametrize("known_at", [4, 250, 400])
def test_rows_are_replaced_at_the_snapshots_position(hand, known_at):
    """The rows are the same whether the sink is before, after or far after the position when the snapshot ends."""
    damage(hand)
    feed = ReloadFeed()
    sink = hand.open(feed)
    assert known_at == 4 or sink.apply(at(4), at(known_at), lambda: False)
    feed.end(hand.reloads(200, 200))
    assert finish(sink)
    assert (hand.rows("t"), hand.rows("bag")) == (T_ROWS, BAG_ROWS)
    again = hand.open(ReloadFeed(AdHocState(reloads=hand.reloads(200, 200))))
    assert finish(again)
    assert (hand.rows("t"), hand.rows("bag")) == (T_ROWS, BAG_ROWS)


def test_log_that_readers_may_have_seen_is_repeated_in_safe_mode(hand):
    """The snapshot already has row 2, and the later values of row 1."""
    hand.log.events = [one for one in hand.log.events if one.at.epoch > 0 or one.table != hand.name("t")]
    hand.log.snapshot(-1, 1, "t", {1: 11, 2: 20, 7: 70})
    feed = ReloadFeed(AdHocState(reloads=(Reload(hand.name("t"), -1, at(200), safe_until=at(301)),)))
    assert finish(hand.open(feed))
    assert hand.rows("t") == T_ROWS


class StopHereError(Exception):
    """A run ends in the middle."""


@pytest.mark.parametrize("after", [1, 3, 7])
def test_a_reload_that_ends_in_the_middle_is_repeated(hand, after, monkeypatch):
    """Before each slice of the rows and of the log: the next run has each row once, also without a key."""
    damage(hand)
    feed = ReloadFeed()
    sink = hand.open(feed)
    assert sink.apply(at(4), at(400), lambda: False)
    feed.end(hand.reloads(200, 200))
    left = [after]
    execute = Reloader._execute

    def failing(reloader, *arguments):
        left[0] -= 1
        if not left[0]:
            reloader.dispatcher.drain(reloader.dispatcher.snapshots.newest_pushed)
            raise StopHereError
        execute(reloader, *arguments)

    monkeypatch.setattr(Reloader, "_execute", failing)
    with pytest.raises(StopHereError):
        finish(sink)
    monkeypatch.undo()
    assert finish(hand.open(ReloadFeed(feed.state)))
    assert (hand.rows("t"), hand.rows("bag")) == (T_ROWS, BAG_ROWS)


def test_changes_of_a_killed_run_are_passed_before_a_reload(hand):
    """Changes executed after the checkpoint by an earlier run are not deleted: the reload comes after them."""
    damage(hand)
    sink = hand.open(ReloadFeed())
    assert sink.apply(at(4), at(400), lambda: False)
    sink.dispatcher.drain(sink.dispatcher.snapshots.newest_pushed)
    # As after SIGKILL: no checkpoint, only records of the workers.
    sink.dispatcher.end(WAIT)
    sink.flusher.end()
    sink.purger.end()
    sink.tables.close()
    assert finish(hand.open(ReloadFeed(AdHocState(reloads=hand.reloads(200, 200)))))
    assert (hand.rows("t"), hand.rows("bag")) == (T_ROWS, BAG_ROWS)


def test_a_statement_on_the_table_waits_for_the_rows(hand):
    """Its rows have the structure before the statement; row changes of the table do not wait."""
    alter = Statement(at(250), hand.database, (hand.name("t"),), f"ALTER TABLE {hand.database}.t ADD w INT DEFAULT 8")
    hand.log.statements.append(alter)
    feed = ReloadFeed(AdHocState(awaited=frozenset({hand.name("t")})))
    feed.plan({hand.name("t")})
    feed.begin({hand.name("t")}, at(200))
    sink = hand.open(feed)
    done = []
    thread = threading.Thread(target=lambda: done.append(finish(sink)))
    thread.start()
    thread.join(1.0)
    assert thread.is_alive()
    assert hand.rows("t") == [(1, 10), (2, 20)]
    feed.end(hand.reloads(200, 200)[:1])
    thread.join(WAIT)
    assert done == [True]
    assert hand.rows("t") == T_ROWS
    assert hand.server.query("SELECT DISTINCT w FROM t", hand.database) == ((8,),)


def test_a_run_without_further_snapshots_ends_before_the_statement(hand):
    """The next run waits for it again."""
    hand.log.statements.append(Statement(at(250), hand.database, (hand.name("t"),), "ALTER TABLE t ADD w INT"))
    state = AdHocState(begin=at(200), reading=frozenset({hand.name("t")}))
    feed = ReloadFeed(state)
    feed.close()
    assert not finish(hand.open(feed))
    assert len(hand.server.query("SELECT * FROM t", hand.database)[0]) == 2


def test_dependent_changes_wait_at_the_snapshots_position(request, tmp_path):
    """With foreign key checks the log waits at the snapshot's position and is not repeated, so cascades stay exact."""
    hand = Hand(request.getfixturevalue("mariadb"), tmp_path)
    hand.settings = replace(hand.settings, server=replace(hand.settings.server, foreign_key_checks=True))
    hand.log.log(100, "t", "insert", 1, 10)
    hand.log.log(200, "t", "insert", 2, 20)
    hand.log.snapshot(-1, 1, "t", {1: 12, 5: 50})
    feed = ReloadFeed(AdHocState(begin=at(150), reading=frozenset({hand.name("t")})))
    sink = hand.open(feed)
    done = []
    thread = threading.Thread(target=lambda: done.append(finish(sink, 300)))
    thread.start()
    thread.join(1.0)
    assert thread.is_alive()
    assert hand.rows("t") == [(1, 10)]
    feed.end([Reload(hand.name("t"), -1, at(160))])
    thread.join(WAIT)
    assert done == [True]
    assert hand.rows("t") == [(1, 12), (2, 20), (5, 50)]
