"""Delays between attempts."""

import random

import pytest

from dmdelta.model.retry import Retry

DEFAULT = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0)


@pytest.mark.parametrize(
    ("retry", "longest"),
    [
        (Retry(), DEFAULT),
        (Retry(first=1.0, longest=3.0), (1.0, 2.0, 3.0, 3.0)),
        (Retry(first=5.0, longest=2.0), (2.0, 2.0)),
        (Retry(first=0.0), (0.0, 0.0)),
    ],
)
def test_a_delay_doubles_up_to_the_longest(retry: Retry, longest: tuple[float, ...], monkeypatch) -> None:
    """Jitter takes at most half of it, so that many clients do not return at once."""
    monkeypatch.setattr(random, "uniform", lambda _low, high: high)
    assert tuple(retry.delay(failures) for failures in range(1, len(longest) + 1)) == longest
    monkeypatch.setattr(random, "uniform", lambda low, _high: low)
    assert tuple(retry.delay(failures) for failures in range(1, len(longest) + 1)) == tuple(
        seconds / 2 for seconds in longest
    )


def test_delays_differ() -> None:
    """All are within the bounds."""
    delays = {Retry().delay(3) for _ in range(50)}
    assert len(delays) > 1
    assert all(1.0 <= delay <= 2.0 for delay in delays)


def test_five_attempts_are_the_default() -> None:
    """The first one counts."""
    assert Retry().attempts == 5
