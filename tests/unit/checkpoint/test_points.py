"""How the points move: global <= every table <= exit point, in whatever order the appliers finish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.checkpoint import ORIGIN, FlushReason, Point, Points, Snapshot, StoredPoints, TablePoint
from dmdelta.checkpoint.points import MOST_RANGES, changed_tables
from dmdelta.model.position import Position

A, B = ("shop", "a"), ("shop", "b")


def at(offset):
    return Point(Position(1, "binlog.000001", offset))


def table(name, offset, version=1):
    return TablePoint(*name, at(offset), version)


def stored(reason=FlushReason.STOP, offset=100, tables=(), exit_point=None):
    return StoredPoints(3, reason, at(offset), {t.name: t for t in tables}, exit_point)


def test_a_new_task_starts_at_the_origin():
    """Nothing handed over, nothing applied: global and exit point are the origin."""
    snapshot = Points("s").snapshot(FlushReason.INTERVAL)
    assert snapshot == Snapshot("s", Point(ORIGIN), (), Point(ORIGIN))


def test_the_exit_point_moves_before_anything_is_applied():
    """Handing a range over moves the exit point at once and the global point not at all."""
    points = Points("s")
    points.hand_over(at(100), {A})
    snapshot = points.snapshot(FlushReason.INTERVAL)
    assert (snapshot.global_point, snapshot.exit_point) == (Point(ORIGIN), at(100))


def test_the_global_point_waits_for_every_table_of_the_oldest_range():
    """The global point passes a range only when all of its tables have completed it, in log order."""
    points = Points("s")
    points.hand_over(at(100), {A, B})
    points.hand_over(at(200), {A})
    points.applied(table(A, 200))
    assert points.snapshot(FlushReason.INTERVAL).global_point == Point(ORIGIN)
    points.applied(table(B, 100))
    snapshot = points.snapshot(FlushReason.INTERVAL)
    assert snapshot.global_point == at(200)
    assert [t.point for t in snapshot.tables] == [at(200), at(200)]


def test_a_range_without_events_moves_the_global_point():
    """A range without events is completed as soon as it is handed over."""
    points = Points("s")
    points.hand_over(at(100), ())
    assert points.snapshot(FlushReason.INTERVAL).global_point == at(100)


def test_a_commit_inside_a_range_moves_only_its_table():
    """A commit in the middle of a range (before a DDL) leaves the range pending."""
    points = Points("s")
    points.hand_over(at(100), {A})
    points.applied(table(A, 50))
    snapshot = points.snapshot(FlushReason.DDL)
    assert (snapshot.global_point, snapshot.tables[0].point) == (Point(ORIGIN), at(50))
    points.applied(table(A, 100, 2))
    assert points.snapshot(FlushReason.DDL).global_point == at(100)


def test_a_table_that_is_ahead_is_not_waited_for():
    """After a restart from the global point, a table whose own point is past the range has already completed it."""
    points = Points("s", stored(tables=[table(A, 300)]))
    points.hand_over(at(300), {A, B})
    points.applied(table(B, 300))
    assert points.snapshot(FlushReason.INTERVAL).global_point == at(300)


def test_a_point_never_moves_back():
    """A replay that ends before the table's own point changes nothing."""
    points = Points("s", stored(tables=[table(A, 300, version=7)]))
    points.hand_over(at(200), {A})
    points.applied(table(A, 200, version=8))
    (only,) = points.snapshot(FlushReason.INTERVAL).tables
    assert (only.point, only.delta_version) == (at(300), 7)


def test_a_range_without_a_commit_keeps_the_delta_version():
    """The version proves that the silver table existed, so a start detects that it has vanished."""
    points = Points("s", stored(tables=[table(A, 100, version=7)]))
    points.hand_over(at(200), {A})
    points.applied(table(A, 200, version=None))
    (only,) = points.snapshot(FlushReason.INTERVAL).tables
    assert (only.point, only.delta_version) == (at(200), 7)


@pytest.mark.parametrize(("offset", "version", "kept"), [(100, 7, "{}"), (200, None, "{}"), (200, 8, None)])
def test_a_table_without_a_new_commit_keeps_its_structure(offset, version, kept):
    """A start reads the newest commit again: the checkpoint has its structure, and needs no new row."""
    stored_one = TablePoint(*A, at(100), 7, "{}")
    points = Points("s", stored(tables=[stored_one]))
    points.hand_over(at(200), {A})
    points.applied(table(A, offset, version))
    snapshot = points.snapshot(FlushReason.INTERVAL)
    assert [one.table_info for one in snapshot.tables] == [kept]
    assert bool(changed_tables(snapshot, [stored_one])) == (kept is None)


def test_a_table_ahead_of_the_run_moves_the_exit_point():
    """A history beyond this run's handed-over ranges is consistent: the table has already completed later ranges."""
    points = Points("s", stored())
    points.hand_over(at(200), {A})
    points.applied(table(A, 300))
    snapshot = points.snapshot(FlushReason.INTERVAL)
    assert (snapshot.global_point, snapshot.tables[0].point, snapshot.exit_point) == (at(200), at(300), at(300))


@pytest.mark.parametrize(
    ("reason", "exit_point"),
    [
        (FlushReason.INTERVAL, at(300)),
        (FlushReason.DDL, at(300)),
        (FlushReason.PAUSE, at(300)),
        (FlushReason.STOP, None),
    ],
)
def test_only_an_orderly_stop_leaves_no_exit_point(reason, exit_point):
    """Every other flush records the end of the handed-over ranges."""
    points = Points("s", stored())
    points.hand_over(at(300), {A})
    assert points.snapshot(reason).exit_point == exit_point


def test_an_orderly_stop_keeps_an_earlier_exit_point_until_it_is_passed():
    """A crashed run's exit point stays recorded until everything below it is applied again."""
    points = Points("s", stored(), exit_point=at(300).position)
    assert points.snapshot(FlushReason.STOP).exit_point == at(300)
    points.hand_over(at(250), {A})
    points.applied(table(A, 250))
    assert points.snapshot(FlushReason.STOP).exit_point == at(300)
    points.hand_over(at(350), {A})
    points.applied(table(A, 350))
    assert points.snapshot(FlushReason.STOP).exit_point is None


@pytest.mark.parametrize(
    ("whole", "own", "exit_point"),
    [(100, 50, 200), (100, 300, 200), (300, 300, 200)],
)
def test_a_snapshot_with_invalid_order_is_rejected(whole, own, exit_point):
    """global <= table <= exit point is asserted on the value that is written."""
    with pytest.raises(AssertionError):
        Snapshot("s", at(whole), (table(A, own),), at(exit_point))


def test_only_tables_moved_by_a_commit_get_a_new_row():
    """A table that only the global point moved is not written again."""
    points = Points("s", stored(tables=[table(A, 100, 5), table(B, 100, 5)]))
    before = points.snapshot(FlushReason.INTERVAL)
    points.hand_over(at(200), {A})
    points.applied(table(A, 200, 6))
    assert [t.name for t in changed_tables(points.snapshot(FlushReason.INTERVAL), before.tables)] == [A]


def test_a_table_that_has_stopped_leaves_a_bounded_number_of_ranges():
    """The others continue for a long time. Once the table has completed its ranges, the global point follows."""
    points, last = Points("s"), 1000
    for end in range(1, last + 1):
        points.hand_over(at(end), {A, B} if end < 20 or end == 500 else {B})
        points.applied(table(B, end, end))
    assert (len(points._handed), points.pending(), points.reached) == (MOST_RANGES, {A}, ORIGIN)
    points.applied(table(A, 19))
    assert at(19).position <= points.reached < at(500).position
    points.applied(table(A, 499, 2))
    assert points.reached < at(500).position
    points.applied(table(A, 500, 3))
    assert (points.reached, points.pending()) == (at(last).position, set())


@given(st.data())
def test_any_order_of_commits_keeps_the_invariant_and_ends_at_the_exit_point(data):
    """Random ranges, tables and commit orders: each snapshot is valid, and at the end all points are equal."""
    names = [("s", name) for name in "abc"]
    points = Points("s")
    ends = data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=6, unique=True).map(sorted))
    waiting: dict = {name: [] for name in names}
    for end in ends:
        tables = data.draw(st.sets(st.sampled_from(names)))
        points.hand_over(at(end), tables)
        for name in tables:
            waiting[name].append(end)
    version = 0
    while any(waiting.values()):
        name = data.draw(st.sampled_from([name for name in names if waiting[name]]))
        version += 1
        points.applied(table(name, waiting[name].pop(0), version))
        bottom = points.snapshot(FlushReason.INTERVAL).global_point.position
        assert all(bottom < at(rest[0]).position for rest in waiting.values() if rest)
    snapshot = points.snapshot(FlushReason.INTERVAL)
    assert snapshot.global_point == snapshot.exit_point == at(ends[-1])
