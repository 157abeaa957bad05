"""How the commits of a request are numbered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.engine.apply.requests import plan_version

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
