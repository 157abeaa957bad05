"""Where a request begins, and how its commits are numbered."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.bronze.progress import LandedRange
from dmdelta.checkpoint import Points, RestartPlan, SafeModePolicy, SourceEvidence
from dmdelta.engine.apply.requests import RangeRequests, plan_version
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.change import Op
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.rules import SourceRules
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.range_profile import TableEvents

LAST = 0xFFFF


@pytest.mark.parametrize(
    ("applied", "batch", "planned"),
    [
        (None, 5, (5, True)),
        (4 << 16 | LAST, 5, (5, True)),
        (5 << 16 | 2, 5, (5, True)),
        (5 << 16 | 2, 7, (7, True)),
        (5 << 16 | 2, 4, (5, False)),
        (5 << 16 | LAST, 4, (6, False)),
        (6 << 16, 6, (6, True)),
        (5 << 16 | LAST - 1, 4, (5, False)),
        (None, 0, (0, True)),
    ],
)
def test_versions_continue_those_of_an_interrupted_turn(applied, batch, planned):
    """A request that ends before the interrupted turn would have ended is a part of it."""
    assert plan_version(applied, batch) == planned


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
def test_versions_grow_whatever_is_joined_and_killed(turns):
    """Delta skips a commit whose version is not above the table's: it must never happen to one that is needed.

    Each turn joins some batches after the table's position and commits in some steps; a kill leaves out the last one. An
    intermediate commit names the turn's beginning, and the last one its end.
    """
    position, newest, last_batch = 0, None, 0
    for joined, steps, killed in turns:
        batch, whole = plan_version(newest, position + joined)
        resumed = newest is not None and newest >> 16 == batch
        first = (newest & LAST) + 1 if resumed else 0
        ordinals = [first + step for step in range(steps + 1)]
        versions = [batch << 16 | ordinal for ordinal in ordinals]
        if whole:
            versions[-1] = batch << 16 | LAST
        for version in versions[: -1 if killed else None]:
            assert newest is None or version > newest
            newest = version
        if not killed:
            position += joined
            last_batch = max(last_batch, newest >> 16)
            assert last_batch >= position


def log_at(offset, epoch=2):
    return Position(epoch, "binlog.000001", offset)


@pytest.mark.parametrize(
    ("begin", "end", "planned"),
    [
        (Position.of_chunk(1, 3), Position.of_chunk(1, 5), Position.of_chunk(1, 3)),
        (Position.of_chunk(1, 3), log_at(900), Position.of_chunk(1, 3)),
        (log_at(100), log_at(900), log_at(500)),
        (log_at(600), log_at(900), log_at(600)),
        (log_at(100, epoch=3), log_at(900, epoch=3), log_at(100, epoch=3)),
    ],
)
def test_an_exact_snapshot_replaces_the_log_before_it_but_not_its_own_rows(begin, end, planned):
    """Its rows are in the epoch before the log."""
    evidence = SourceEvidence(None, None)
    requests = RangeRequests(None, Points("s"), evidence, SafeModePolicy(False, timedelta(0)))
    state, landed = requests.states.of(("shop", "t")), LandedRange(9, begin, end, parse_gtid_set("", "mysql"))
    state.plan = RestartPlan(Position.of_chunk(1, 1), "")
    requests.states.read_exactly({state.name: log_at(500)})
    assert requests.begin(None, state.name, landed) == planned


def requests_of(**facts):
    """The requests of a source without any state."""
    context = SilverContext(Lakehouse(root="/lake"), "task", "s", "run", "mysql", SourceRules())
    evidence = SourceEvidence(None, None)
    return RangeRequests(context, Points("s"), evidence, SafeModePolicy(False, timedelta(0)), **facts)


@pytest.mark.parametrize(
    ("begin", "safe_until", "planned"),
    [
        (log_at(500), log_at(800), Mode.NORMAL),
        (log_at(600), log_at(800), Mode.NORMAL),
        (log_at(100, epoch=3), log_at(800, epoch=3), Mode.SAFE),
        (log_at(600, epoch=3), log_at(800, epoch=3), Mode.SAFE),
        (log_at(800, epoch=3), log_at(800, epoch=3), Mode.NORMAL),
        (log_at(100, epoch=3), None, Mode.NORMAL),
    ],
)
def test_log_that_is_read_again_is_applied_in_safe_mode_also_after_an_exact_snapshot(begin, safe_until, planned):
    """The snapshot's position excludes an overlap only in the log that follows it, not in a later epoch."""
    requests = requests_of()
    state = requests.states.of(("shop", "t"))
    state.plan = RestartPlan(log_at(500), "")
    requests.states.read_exactly({state.name: log_at(500)})
    landed = LandedRange(9, begin, log_at(900, begin.epoch), parse_gtid_set("", "mysql"), safe_until)
    events = TableEvents(*state.name, {Op.INSERT: 1}, begin, begin)
    request = requests.request(None, events, landed)
    assert request.mode is planned
    assert request.overlap_until == (safe_until if begin.epoch == 3 else None)


@pytest.mark.parametrize(
    ("begin", "rest", "until"),
    [
        (log_at(700), None, log_at(800)),
        (log_at(800), None, None),
        (log_at(100, epoch=3), log_at(400, epoch=3), log_at(400, epoch=3)),
        (log_at(400, epoch=3), log_at(400, epoch=3), None),
        (log_at(100, epoch=3), None, None),
    ],
)
def test_the_overlap_of_a_table_continues_in_the_log_of_another_server(begin, rest, until):
    """A snapshot or a repair has seen log that the first server's log did not have when the second one took over."""
    requests = requests_of(rest=lambda until, epoch: rest if (until, epoch) == (log_at(800), begin.epoch) else None)
    state = requests.states.of(("shop", "t"))
    state.plan, state.safe_until = RestartPlan(log_at(500), ""), log_at(800)
    landed = LandedRange(9, begin, log_at(900, begin.epoch), parse_gtid_set("", "mysql"))
    request = requests.request(None, TableEvents(*state.name, {Op.INSERT: 1}, begin, begin), landed)
    assert request.mode is (Mode.SAFE if until is not None else Mode.NORMAL)
    assert request.safe_until == request.overlap_until == until
