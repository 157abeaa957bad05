"""The end position of a source after a pause, and its description for users."""

from dmdelta.engine.run.end_position import MAX_NAMES, SINK, plan_end_position, plan_reason
from dmdelta.model.position import Position

HERE, THERE = Position(1, "b.000001", 400), Position(1, "b.000001", 300)


def test_only_tables_at_other_positions_are_listed():
    """A table without a change yet, one that lags, and a sink that is ahead."""
    end = plan_end_position("s", THERE, {"d.b": THERE, "d.c": None, SINK: HERE})
    assert end.apart == {"d.c": None, SINK: HERE}
    assert plan_end_position("s", HERE, {"d.b": HERE}).apart == {}


def test_the_reason_names_the_source_and_the_positions():
    """For the sources with tables at other positions, and for no other source."""
    ends = [
        plan_end_position("one", HERE, {"d.a": THERE, SINK: THERE}),
        plan_end_position("two", HERE, {}),
        plan_end_position("three", HERE, {"d.z": None}),
    ]
    reason = plan_reason(ends)
    assert reason.message == (
        f"one is at {HERE}, except d.a at {THERE}, the sink at {THERE}; three is at {HERE}, except d.z at its begin"
    )
    assert "nothing is lost" in reason.hint
    assert plan_reason(ends[1:2]) is None
    assert plan_reason([]) is None


def test_a_long_list_is_shortened_with_the_number_of_the_others():
    known = {f"d.t{number:03}": THERE for number in range(MAX_NAMES + 7)}
    reason = plan_reason([plan_end_position("s", HERE, known)])
    assert reason.message.endswith(" and 7 more")
    assert "d.t019 " in reason.message
    assert "d.t020 " not in reason.message
