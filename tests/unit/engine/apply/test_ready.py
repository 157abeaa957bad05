"""Which turns could start now, given the states of the tables."""

import time

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.apply.ready import ready_turns
from dmdelta.engine.apply.table_state import Phase, TableStates
from dmdelta.engine.apply.turns import PendingRange
from dmdelta.model.change import Op
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.silver.schema.range_profile import TableEvents

A, B, C = (("shop", table) for table in "abc")


def at(offset):
    return Position(1, "binlog.000001", offset)


FIRST, SECOND = (
    LandedRange(number, at(100 * number), at(100 * number + 100), parse_gtid_set("", "mysql")) for number in (1, 2)
)


def pending(name, landed, *, rows=1, since=0.0, group=()):
    events = TableEvents(*name, {Op.INSERT: rows}, landed.begin, landed.end)
    return PendingRange(landed, events, since, frozenset(group))


def states(**tables):
    """The states of tables with their pending ranges."""
    found = TableStates()
    for table, ranges in tables.items():
        found.of(("shop", table)).pending.extend(ranges)
    return found


def ready(found, busy=()):
    return [turn.names for turn in ready_turns(found, busy, lambda _: frozenset())]


def test_a_turn_of_a_single_table():
    """It has the rows of all pending ranges, the age of the oldest, and the merged tables of its table."""
    since = time.monotonic() - 50.0
    found = states(a=[pending(A, FIRST, rows=2, since=since), pending(A, SECOND, rows=5, since=since + 40.0)], b=[])
    (turn,) = ready_turns(found, (), lambda names: frozenset(("all", table) for _, table in names))
    assert (turn.names, turn.rows, turn.merged) == ((A,), 7, {("all", "a")})
    assert 50.0 <= turn.age < 90.0


@pytest.mark.parametrize(("seconds", "cost"), [(None, 1.0), (0.0, 0.0), (7.5, 7.5)])
def test_the_cost_of_a_turn_is_that_of_its_tables_last_turns(seconds, cost):
    """Until the first one, it is a second."""
    found = states(a=[pending(A, FIRST)])
    found.of(A).seconds = seconds
    assert [turn.cost for turn in ready_turns(found, (), lambda _: frozenset())] == [cost]


@pytest.mark.parametrize("phase", [Phase.MAINTENANCE, Phase.SNAPSHOT, Phase.WAITING, Phase.STOPPED])
def test_a_table_that_does_not_follow_has_no_turn(phase):
    """Nor has a table that is busy; other tables have theirs."""
    found = states(a=[pending(A, FIRST)], b=[pending(B, FIRST)])
    assert ready(found) == [(A,), (B,)]
    assert ready(found, {A}) == [(B,)]
    found.of(B).move(phase)
    assert ready(found) == [(A,)]


def test_renamed_tables_have_one_turn():
    """Its cost is that of its most expensive table, and its age that of the oldest range."""
    since = time.monotonic() - 50.0
    found = states(
        b=[pending(B, FIRST, rows=1, since=since, group=(A, B))],
        a=[pending(A, FIRST, rows=2, since=since + 30.0, group=(A, B))],
        c=[pending(C, FIRST, rows=4, since=since)],
    )
    found.of(A).seconds, found.of(B).seconds = 2.0, 9.0
    both, other = sorted(ready_turns(found, (), lambda _: frozenset()), key=lambda turn: turn.names)
    assert (both.names, both.rows, both.cost, other.names) == ((A, B), 3, 9.0, (C,))
    assert both.age >= 50.0


@pytest.mark.parametrize("busy", [A, B])
def test_renamed_tables_wait_for_each_other(busy):
    """No turn starts while one of them is busy, or does not follow."""
    found = states(a=[pending(A, FIRST, group=(A, B))], b=[pending(B, FIRST, group=(A, B))])
    assert ready(found) == [(A, B)]
    assert ready(found, {busy}) == []
    found.of(busy).move(Phase.MAINTENANCE)
    assert ready(found) == []


def test_a_rename_waits_until_its_tables_have_reached_it():
    """The table that has an earlier range applies that first, alone; a table without the rename's range takes no part."""
    renames = {"group": (A, B, C)}
    found = states(
        a=[pending(A, SECOND, **renames)], b=[pending(B, FIRST), pending(B, SECOND, **renames)], c=[pending(C, FIRST)]
    )
    assert ready(found) == [(B,), (C,)]
    found.of(B).pending.popleft()
    assert ready(found) == [(A, B), (C,)]
