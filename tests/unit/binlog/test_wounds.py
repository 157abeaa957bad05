"""Damage that no checksum detects: the codec raises a dmdelta error, or returns well-formed rows."""

from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dmdelta.errors import DmdeltaError
from tests.support.wounds import Act, Wound, read_every_way, seeds, wounded

TELLING = (b"\0", b"\1", b"\x7f", b"\x80", b"\xfb", b"\xfc", b"\xfe", b"\xff", b"\xff\xff", b"\xff" * 4, b"\0" * 8)
"""Bytes with a meaning in the formats."""
PLACES = st.integers(0, 80) | st.integers(0, 1 << 15)
WOUNDS = st.lists(
    st.builds(
        Wound,
        st.integers(0, 200),
        st.sampled_from([Act.FLIP, Act.FLIP, Act.WRITE, Act.WRITE, *Act]),
        PLACES,
        st.sampled_from(TELLING) | st.binary(min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=3,
)


def check_wounds(number: int, wounds: list[Wound]) -> None:
    """The property; a hang is detected by the lane's time limit."""
    with suppress(DmdeltaError):
        read_every_way(wounded(seeds()[number % len(seeds())], wounds))


@settings(max_examples=150)
@given(number=st.integers(0, len(seeds()) - 1), wounds=WOUNDS)
@example(number=567, wounds=[Wound(63, Act.WRITE, 63, b"\0" * 8)])  # more names than columns, and some equal
def test_damage_that_no_checksum_detects(number: int, wounds: list[Wound]) -> None:
    """Any events of real servers, modified in any way and given a valid checksum: a dmdelta error, or readable VARIANT."""
    check_wounds(number, wounds)


@pytest.mark.long
@settings(max_examples=20_000)
@given(number=st.integers(0, len(seeds()) - 1), wounds=WOUNDS)
def test_much_damage_that_no_checksum_detects(number: int, wounds: list[Wound]) -> None:
    """The same with more examples."""
    check_wounds(number, wounds)


def test_undamaged_events_are_resealed_unchanged() -> None:
    """Splitting and resealing events changes nothing, so that only the damage is tested."""
    assert [wounded(seed, []).data for seed in seeds()] == [seed.data for seed in seeds()]
