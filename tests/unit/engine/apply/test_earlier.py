"""What a run knows of a table's structure before its first applied range, without a query for the table."""

from datetime import timedelta

from dmdelta.checkpoint import SafeModePolicy, SourceEvidence
from dmdelta.engine.apply.requests import RangeRequests
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents

T = ("s", "t")


def at(offset):
    return Position(1, "binlog.000001", offset)


def event(offset):
    return StructureEvent(at(offset), -1, Op.SCHEMA, f"structure at {offset}")


class Earlier:
    """The structures before the run, for one table."""

    def before(self, name):
        assert name == T
        return (event(4),)


def requests():
    return RangeRequests(
        None, None, SourceEvidence(None, None), SafeModePolicy(always=False, window=timedelta()), Earlier()
    )


def known(found, *structure, begin):
    state = found.states.of(T)
    earlier = found._earlier(state, TableEvents(*T, {}, at(10), at(90), structure), at(begin))
    return None if earlier is None else (earlier.end, [one.position.offset for one in earlier.events])


def test_events_of_ranges_that_were_not_applied_count():
    """A table may be ahead of the first ranges by its own commits."""
    found = requests()
    assert known(found, event(20), event(40), begin=30) == (at(30), [4, 20])
    assert known(found, event(60), begin=50) == (at(50), [4, 20, 40])
    found.states.of(T).structure = object()
    assert known(found, event(70), begin=65) is None
    found.states.of(T).structure = None
    assert known(found, begin=80) is None


def test_a_table_that_was_paused_is_looked_up():
    """A snapshot may have written structures into the log behind the run's first range."""
    found = requests()
    found.states.of(T).forget()
    assert known(found, begin=30) is None
