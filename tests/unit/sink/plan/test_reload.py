"""Where ad-hoc snapshots precede the log, what waits for them, and which changes are in doubt."""

from dataclasses import replace

import pytest

from dmdelta.model.position import Position
from dmdelta.sink.plan.reload import AdHocState, Reload, is_done

T, U, V = ("d", "t"), ("d", "u"), ("d", "v")


def at(offset, epoch=1):
    return Position(epoch, "binlog.000001", offset)


READING = AdHocState(awaited=frozenset({T, V}), begin=at(100), reading=frozenset({T}))


@pytest.mark.parametrize(
    ("state", "offset", "changed", "waits"),
    [
        (READING, 100, [T], True),
        (READING, 100, [U, T], True),
        (READING, 100, [], True),
        (READING, 99, [T], False),
        (READING, 100, [U, V], False),
        (READING, 100, None, False),
        (replace(READING, planning=True, begin=None), 1, [V], True),
        (replace(READING, planning=True, begin=None), 1, [U], False),
        (AdHocState(), 100, [], False),
    ],
)
def test_a_statement_waits_for_the_rows_of_its_tables(state, offset, changed, waits):
    """A statement that names no table may concern any. Row changes do not wait, unless tables depend on each other."""
    assert state.must_wait(at(offset), changed, ordered=False) is waits


@pytest.mark.parametrize(("offset", "waits"), [(99, False), (100, True)])
def test_dependent_changes_wait_for_every_row(offset, waits):
    """With checked foreign keys nothing after the snapshot's start precedes its rows."""
    assert READING.must_wait(at(offset), None, ordered=True) is waits
    assert replace(READING, planning=True).must_wait(at(1), None, ordered=True)


def test_the_oldest_snapshot_is_due_first():
    """A reload is due from its position on, unless the target has it; a later one of the same table replaces it."""
    first, second = Reload(T, -1, at(50)), Reload(U, -1, at(60))
    later = Reload(T, -2, at(70))
    state = AdHocState(reloads=(first, second, later))
    assert state.due(at(49), {}) == []
    assert state.due(at(50), {}) == [first]
    assert state.due(at(60), {}) == [first, second]
    assert state.due(at(70), {}) == [second]
    assert state.due(at(70), {U: -1}) == [later]
    assert state.due(at(70), {T: -2, U: -1}) == state.left({T: -2, U: -1}) == []
    assert [is_done(one, {T: -1}) for one in (first, second, later)] == [True, False, False]


def test_changes_are_in_doubt_until_the_rows_are_replaced_and_while_they_may_be_newer():
    """Safe mode: of an awaited table; before the reload; after it up to where the snapshot's readers were."""
    assert READING.is_in_doubt(V, at(1), {})
    assert not READING.is_in_doubt(U, at(1), {})
    state = AdHocState(reloads=(Reload(T, -1, at(50), safe_until=at(80)), Reload(U, -1, at(50))))
    assert state.is_in_doubt(T, at(10), {})
    assert state.is_in_doubt(U, at(90), {})
    done = {T: -1, U: -1}
    assert [state.is_in_doubt(T, at(offset), done) for offset in (10, 50, 79, 80)] == [False, True, True, False]
    assert not state.is_in_doubt(U, at(60), done)


def test_another_server_has_the_rest_of_an_overlap_before_the_end_of_its_log():
    """Positions of the former log mean nothing in its log; a reload that is exact, or of its own epoch, is unchanged."""
    later = Reload(V, -2, Position(3, "binlog.000001", 5), Position(3, "binlog.000001", 9))
    state = AdHocState(reloads=(Reload(T, -1, at(50), safe_until=at(80)), Reload(U, -1, at(50)), later))
    epoch, end = at(50).epoch + 1, Position(at(50).epoch + 1, "binlog.000001", 40)
    assert state.overlaps_before(epoch)
    assert not state.overlaps_before(at(50).epoch)
    moved = state.in_epoch(epoch, lambda until, to: end if (until, to) == (at(80), epoch) else None)
    assert moved.reloads == (replace(state.reloads[0], safe_until=end), *state.reloads[1:])
    assert not moved.overlaps_before(epoch)
    done = {T: -1}
    assert [moved.is_in_doubt(T, replace(end, offset=offset), done) for offset in (4, 39, 40)] == [True, True, False]


def test_the_log_is_cut_where_snapshots_precede_it():
    """Where a snapshot's log begins, and where a reload is due; not if the target already has it."""
    state = replace(READING, reloads=(Reload(U, -1, at(50)), Reload(V, -1, at(70))))
    assert [state.next_place(at(offset), at(200), {U: -1}) for offset in (0, 70, 100)] == [at(70), at(100), at(200)]
    assert state.next_place(at(0), at(60), {U: -1}) == at(60)


def test_the_reloads_of_a_held_shard_wait_for_it():
    """They are due when it continues; the others are due at their positions."""
    state = AdHocState(awaited=frozenset({V}), reloads=(Reload(T, -1, at(50)), Reload(U, -1, at(50))))
    assert [one.table for one in state.without({T}).due(at(60), {})] == [U]
    assert [one.table for one in state.only(T).due(at(60), {})] == [T]
    assert state.only(T).awaited == state.without({T}).awaited == {V}
