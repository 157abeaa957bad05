"""What a turn covers, and which table has the next one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.bronze.progress import LandedRange
from dmdelta.changelog.ranges import XaGroup
from dmdelta.engine.apply.turns import (
    PendingRange,
    WaitingTurn,
    join_events,
    join_pending,
    plan_cost,
    plan_joined,
    plan_missed,
    plan_next_turn,
)
from dmdelta.model.change import Op
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents

NO_GTIDS = parse_gtid_set("", "mysql")
NAME = ("shop", "orders")


def at(offset, epoch=1, file=1):
    return Position(epoch, f"binlog.{file:06}", offset)


def landed(batch, begin, end, safe_until=None):
    return LandedRange(batch, begin, end, NO_GTIDS, safe_until)


def events(offset, **facts):
    return TableEvents(*NAME, facts.pop("rows", {Op.INSERT: 1}), at(offset), at(offset + 1), **facts)


def pending(batch, begin, end, **facts):
    return PendingRange(landed(batch, at(begin), at(end)), events(begin), float(batch), **facts)


def waiting(name, rows=1, age=1.0, cost=1.0, merged=()):
    return WaitingTurn((("shop", name),), frozenset(merged), rows, age, cost)


def test_pending_ranges_are_joined_up_to_the_maximum_size():
    parts = [pending(1, 0, 100), pending(2, 100, 200), pending(3, 200, 300)]
    assert [plan_joined(parts, most) for most in (50, 100, 199, 200, 1000)] == [1, 1, 1, 2, 3]


def test_log_between_pending_ranges_counts():
    """The table had no events there, but its turn reads bronze from the first range to the last."""
    assert plan_joined([pending(1, 0, 100), pending(9, 800, 900)], 500) == 1


def test_a_turn_ends_before_a_rename_and_another_epoch():
    renamed = pending(2, 100, 200, group=frozenset({NAME, ("shop", "old")}))
    assert plan_joined([pending(1, 0, 100), renamed, pending(3, 200, 300)], 1000) == 1
    assert plan_joined([renamed, pending(3, 200, 300)], 1000) == 1
    snapshot = PendingRange(landed(1, Position.of_chunk(1, 1), Position.of_chunk(1, 3)), None, 0.0)
    log = PendingRange(landed(2, at(4, epoch=2), at(100, epoch=2)), None, 0.0)
    assert plan_joined([snapshot, log], 1 << 40) == 1


def test_a_held_table_misses_one_range_of_each_epoch():
    """The rows of a snapshot and the log that overlaps it are not in one range; the first range says nothing about it."""
    snapshot = LandedRange(3, at(0, epoch=1), at(300, epoch=1), NO_GTIDS)
    log = LandedRange(7, at(500, epoch=2), at(700, epoch=2), NO_GTIDS, at(600, epoch=2))
    assert plan_missed([snapshot, log], at(200, epoch=1)) == [replace(snapshot, begin=at(200, epoch=1)), log]
    assert plan_missed([snapshot, log], at(510, epoch=2)) == [replace(log, begin=at(510, epoch=2), safe_until=None)]


@pytest.mark.parametrize("begin", [at(700, epoch=2), at(900, epoch=2)])
def test_a_held_table_that_misses_nothing_has_an_empty_range(begin):
    log = LandedRange(7, at(500, epoch=2), at(700, epoch=2), NO_GTIDS)
    assert plan_missed([log], begin) == [replace(log, begin=begin, end=begin)]


def test_joined_ranges_have_the_number_and_the_end_of_the_newest():
    parts = [pending(1, 0, 100), pending(2, 100, 200), pending(5, 400, 500)]
    joined = join_pending(parts)
    assert (joined.landed.batch, joined.landed.begin, joined.landed.end) == (5, at(0), at(500))
    assert (joined.since, joined.rows) == (1.0, 3)


def test_joined_ranges_keep_the_limit_of_safe_mode():
    parts = [
        PendingRange(landed(1, at(0), at(100), safe_until=at(150)), events(0), 0.0),
        PendingRange(landed(2, at(100), at(200)), events(100), 0.0),
    ]
    assert join_pending(parts).landed.safe_until == at(150)


def test_unknown_events_stay_unknown():
    """The events of a resumed table are looked up for the whole turn."""
    resumed = PendingRange(landed(1, at(0), at(100)), None, 0.0)
    assert join_pending([resumed, pending(2, 100, 200)]).events is None


def test_joined_events():
    ddl = [StructureEvent(at(offset), 0, Op.DDL, f"ALTER {offset}") for offset in (10, 110)]
    one, other = XaGroup("a", (1, 5), 1, None, 5), XaGroup("b", (1, 9), 1, 5, 9)
    first = events(
        10, rows={Op.INSERT: 2, Op.READ: 1}, structure=(ddl[0],), partial=1, moves=1, groups=(one,), read=True
    )
    then = events(110, rows={Op.INSERT: 3, Op.DELETE: 4}, structure=(ddl[1],), partial=2, moves=5, groups=(one, other))
    joined = join_events(first, then)
    assert joined.rows == {Op.INSERT: 5, Op.READ: 1, Op.DELETE: 4}
    assert (joined.first, joined.last) == (at(10), at(111))
    assert joined.structure == tuple(ddl)
    assert (joined.partial, joined.moves, joined.groups, joined.read) == (3, 6, (one, other), True)
    assert (joined.row_count, joined.ddl) == (10, 2)


def test_the_most_urgent_table_is_next():
    """Urgency depends on age, rows and cost; ties are resolved by name."""
    assert plan_next_turn([], ()) is None
    for more, less in [
        (waiting("b", age=2), waiting("a", age=1)),
        (waiting("b", rows=100), waiting("a", rows=1)),
        (waiting("b", cost=1), waiting("a", cost=5)),
        (waiting("a"), waiting("b")),
    ]:
        assert plan_next_turn([less, more], ()) is more
        assert plan_next_turn([more, less], ()) is more


def test_a_merged_table_that_is_being_written_is_left_out():
    shard, other = waiting("part_1", age=100, merged={("shop", "all")}), waiting("other")
    assert plan_next_turn([shard, other], {("shop", "all")}) is other
    assert plan_next_turn([shard], {("shop", "all")}) is None
    assert plan_next_turn([shard, other], {("shop", "rest")}) is shard


def simulated(rates, costs, seconds, writers=1):
    """The longest wait of each table, if rows arrive evenly and writers take turns as planned."""
    since, longest = dict.fromkeys(rates, 0.0), dict.fromkeys(rates, 0.0)
    free = [0.0] * writers
    while min(free) < seconds:
        writer = free.index(min(free))
        now = free[writer]
        turns = [
            WaitingTurn((("shop", name),), frozenset(), int(rates[name] * (now - since[name])), now - since[name], cost)
            for name, cost in costs.items()
            if since[name] <= now
        ]
        chosen = plan_next_turn(turns, ())
        if chosen is None:
            free[writer] = min(value for value in free if value > now)
            continue
        name = chosen.names[0][1]
        longest[name] = max(longest[name], now - since[name])
        since[name] = free[writer] = now + costs[name]
    return {name: max(longest[name], seconds - since[name]) for name in rates}


def test_equal_tables_wait_equally():
    """With 200 equal tables, the worst waits about as long as the median one."""
    names = [f"t{number:03}" for number in range(200)]
    waits = sorted(simulated(dict.fromkeys(names, 2.0), dict.fromkeys(names, 0.5), 1000, writers=3).values())
    assert waits[-1] <= 1.1 * waits[100]


def test_a_table_with_few_rows_is_served():
    """Next to tables with thousands of rows per second, for which there are too few writers."""
    busy = [f"busy{number}" for number in range(20)]
    waits = simulated({**dict.fromkeys(busy, 5000.0), "rare": 0.001}, dict.fromkeys([*busy, "rare"], 1.0), 1000)
    assert waits["rare"] <= 4 * waits["busy0"]


def test_an_expensive_table_is_served():
    """It costs 50 times as much as each of the others."""
    names = [f"t{number}" for number in range(20)]
    waits = simulated(dict.fromkeys([*names, "big"], 10.0), {**dict.fromkeys(names, 1.0), "big": 50.0}, 5000)
    assert waits["big"] <= 10 * waits["t0"]


def test_a_slow_turn_counts_only_while_turns_are_slow():
    """The first turn of a run pays for a cold JVM; a table whose turns stay slow has their cost in the end."""
    assert plan_cost(plan_cost(None, 8.0), 0.5) == 0.5
    cost = plan_cost(0.5, 8.0)
    assert 0.5 < cost < 4.0
    for _ in range(50):
        cost = plan_cost(cost, 8.0)
    assert cost == pytest.approx(8.0, rel=0.01)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.floats(0, 1000), st.floats(0, 100), st.sampled_from(["x", "y", ""])),
        min_size=1,
    ),
    st.sets(st.sampled_from(["x", "y"])),
)
def test_a_turn_is_found_whenever_one_can_start(tables, in_use):
    turns = [
        waiting(str(number), rows, age, cost, [("m", merged)] if merged else [])
        for number, (rows, age, cost, merged) in enumerate(tables)
    ]
    chosen = plan_next_turn(turns, {("m", name) for name in in_use})
    assert (chosen is None) == all(
        turn.merged and merged[3] in in_use for turn, merged in zip(turns, tables, strict=True)
    )
    assert chosen is None or all(name not in in_use for _, name in chosen.merged)


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_the_cost_of_empty_turns_is_bounded_below(seconds):
    assert waiting("a", cost=seconds).urgency == waiting("a", cost=0.1).urgency
