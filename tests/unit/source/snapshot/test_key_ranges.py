"""Splitting an integer key into ranges."""

from hypothesis import given
from hypothesis import strategies as st

from dmdelta.source.snapshot.key_ranges import even_ranges

KEYS = st.integers(-(2**63), 2**64 - 1)


@given(KEYS, st.integers(0, 10_000), st.integers(2, 50), st.lists(st.integers(-5, 10_005), max_size=30))
def test_every_key_is_in_one_range(least: int, span: int, parts: int, offsets: list[int]) -> None:
    """Each key, inside or outside the minimum and maximum, satisfies exactly one condition."""
    conditions = even_ranges("k", least, least + span, parts)
    assert 1 <= len(conditions) <= parts
    for key in (least, least + span, *(least + offset for offset in offsets)):
        holding = [one for one in conditions if not one or eval(one.replace("AND", "and"), {"k": key})]  # noqa: S307
        assert len(holding) == 1, (key, holding)


def test_an_empty_table_is_one_range() -> None:
    """There is nothing to split."""
    assert even_ranges("k", None, None, 4) == [""]
