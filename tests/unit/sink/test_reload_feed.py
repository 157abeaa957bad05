"""The state of ad-hoc snapshots that the sink follows."""

from dmdelta.model.position import Position
from dmdelta.sink.plan.reload import AdHocState, Reload
from dmdelta.sink.reload_feed import ReloadFeed

T, U, V = ("d", "t"), ("d", "u"), ("d", "v")
BEGIN = Position(2, "binlog.000001", 100)


def test_a_snapshot_is_followed_from_its_plan_to_its_end():
    """Planned, begun without a table that does not exist, finished with one that is read again."""
    feed = ReloadFeed(AdHocState(awaited=frozenset({V})))
    feed.plan({T, U})
    assert feed.state == AdHocState(awaited=frozenset({T, U, V}), planning=True)
    feed.begin({T, V}, BEGIN, missing={U})
    assert feed.state == AdHocState(awaited=frozenset({T, V}), begin=BEGIN, reading=frozenset({T, V}))
    reload = Reload(T, -1, BEGIN)
    feed.end([reload], requeued={V})
    assert feed.state == AdHocState(awaited=frozenset({V}), reloads=(reload,))


def test_a_closed_feed_is_not_waited_for():
    """Without a thread that takes snapshots, the state no longer changes."""
    feed = ReloadFeed()
    assert feed.wait()
    feed.close()
    assert not feed.wait()


def test_an_overlap_continues_in_the_log_of_another_server():
    """Its end is looked up once, and only if a reload overlaps an earlier log."""
    feed, end, looked_up = ReloadFeed(), Position(3, "binlog.000001", 40), []
    until = Position(2, "binlog.000001", 200)

    def rest(*asked):
        looked_up.append(asked)
        return end

    feed.enter_epoch(2, rest)
    feed.end([Reload(T, -1, BEGIN, until)])
    feed.enter_epoch(2, rest)
    assert not looked_up
    feed.enter_epoch(3, rest)
    feed.enter_epoch(3, rest)
    assert feed.state.reloads == (Reload(T, -1, BEGIN, end),)
    assert looked_up == [(until, 3)]
