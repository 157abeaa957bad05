"""The condition for integer keys: it is true for exactly the keys of a batch."""

import re
from bisect import bisect_left

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmdelta.silver.rows.key_predicate import MAX_PREDICATE_BYTES, SUFFIXES, plan_key_predicate

TERM = re.compile(r"`k``y` BETWEEN (-?\d+)(\w*) AND (-?\d+)(\w*)|`k``y` IN \((.*?)\)")


def matched(predicate, suffix):
    """The integers in a condition, each as often as it occurs."""
    found = []
    for term in predicate.split(" OR "):
        first, one, last, two, values = TERM.fullmatch(term).groups()
        if values is None:
            assert one == two == suffix
            found += range(int(first), int(last) + 1)
        else:
            literals = values.split(",")
            assert all(re.fullmatch(rf"-?\d+{suffix}", literal) for literal in literals)
            found += [int(literal.removesuffix(suffix)) for literal in literals]
    return found


NEAR = st.lists(st.integers(-30, 30), min_size=1)
FAR = st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=60)
RUNS = st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 40)), min_size=1, max_size=40).map(
    lambda runs: [key for first, length in runs for key in range(first, first + length)]
)


@given(NEAR | FAR | RUNS, st.sampled_from(sorted(SUFFIXES)))
@example([-(2**63), 2**63 - 1, 2**64 - 1], "DECIMAL(20,0)")
@example([0], "TINYINT")
def test_exactly_the_keys_match(keys, kind):
    """Every key once, and nothing between keys that are not neighbours."""
    keys = sorted(set(keys))
    predicate = plan_key_predicate("k`y", kind, keys)
    assert sorted(matched(predicate, SUFFIXES[kind])) == keys


@given(st.sets(st.integers(0, 10**9), min_size=1), st.integers(1, 4000))
def test_the_length_is_limited(starts, times):
    """A condition of at most 64 KiB, or none; it is never cut."""
    keys = sorted({key + 10**10 * number for key in starts for number in range(times)})[:12_000]
    predicate = plan_key_predicate("k`y", "BIGINT", keys)
    if predicate is not None:
        assert len(predicate.encode()) <= MAX_PREDICATE_BYTES
        assert sorted(matched(predicate, "L")) == keys
    else:
        assert len(keys) * len("10000000000L,") > MAX_PREDICATE_BYTES // 2


@pytest.mark.parametrize(("width", "gap"), [(1, 2), (2, 3), (3, 9)])
@pytest.mark.parametrize("column", ["id", "größe"])
def test_the_length_is_used_up(width, gap, column):
    """The longest condition ends less than two further terms below 64 KiB, for values and for intervals."""
    keys = [10**7 + start * gap + key for start in range(8000) for key in range(width)]

    def of_first(count):
        return plan_key_predicate(column, "BIGINT", keys[: count * width])

    count = bisect_left(range(8000), True, key=lambda count: of_first(count + 1) is None)
    size = len(of_first(count).encode())
    assert 64 * 1024 - 2 * size // count < size <= 64 * 1024


@pytest.mark.parametrize(
    ("keys", "predicate"),
    [
        ([], None),
        ([7], "`id` IN (7L)"),
        ([1, 2], "`id` IN (1L,2L)"),
        ([1, 2, 3], "`id` BETWEEN 1L AND 3L"),
        ([-2, -1, 0, 5, 7, 8, 9], "`id` BETWEEN -2L AND 0L OR `id` BETWEEN 7L AND 9L OR `id` IN (5L)"),
        (range(0, 60_000, 6), None),
        (range(10_000), "`id` BETWEEN 0L AND 9999L"),
    ],
)
def test_runs_are_intervals(keys, predicate):
    """Three neighbours or more are an interval; 10,000 separate keys are too long for the history."""
    assert plan_key_predicate("id", "BIGINT", keys) == predicate
