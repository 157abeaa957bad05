"""Records of executed events: small, exact, and fast to query."""

import random

from dmdelta.sink.execution_log import ExecutedEvents, decode, encode


def test_about_three_bytes_per_event():
    """A transaction of a hundred rows in a few events takes little."""
    events = [((1 << 40) + 8000 * (row // 30), row) for row in range(100)]
    assert len(encode(events)) < 300
    assert list(decode(encode(events))) == events


def test_any_events_round_trip():
    """Events in any order are decoded in sorted order."""
    source = random.Random(1)
    for _ in range(50):
        events = {
            (source.choice((1, 3)) * (1 << 40) + source.randrange(10**6), source.randrange(300)) for _ in range(40)
        }
        assert list(decode(encode(source.sample(sorted(events), len(events))))) == sorted(events)
    assert list(decode(encode([]))) == []


def test_what_was_executed():
    """Events are known by epoch, seq and row until they are forgotten."""
    executed = ExecutedEvents()
    assert not executed
    executed.add(1, 199, encode([(100, 0), (100, 5)]))
    executed.add(1, 299, encode([(120, 0), (200, 1)]))
    executed.add(2, 100, encode([(100, 1)]))
    assert len(executed) == 5
    assert executed.has(1, (100, 5))
    assert not executed.has(1, (100, 1))
    assert executed.has(2, (100, 1))
    executed.forget(1, 200)
    assert not executed.has(1, (100, 5))
    assert executed.has(1, (200, 1))
    assert executed.has(1, (120, 0)), "an XA transaction's row, read where it takes effect"
    executed.forget(2, 101)
    assert not executed
