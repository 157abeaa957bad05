"""`make nightly`: the next part, and resuming."""

from dataclasses import replace

import pytest

from tests.nightly.lanes import LANES, RunLane, SuiteLane
from tests.nightly.page import JSON, summarize
from tests.nightly.plan import fitting, is_complete, parse_budget, pending, plan_next
from tests.nightly.state import PART_SECONDS, Night, Outcome, PartResult, has_hung, read_night, write_night
from tests.nightly.state import CaseResult as Result

COMMIT = "3d43afd00000000000000000000000000000000a"
UNIT = SuiteLane("unit", ("tests/unit",), "not long", test_seconds=600.0)
SOAK = RunLane("soak", ("-m", "soak", "--seed", "{seed}", "--json", "{json}"), seconds=1900.0, parts=2)


def a_night(**changes):
    """A night with four tests, before its first part."""
    return replace(Night(COMMIT, 7, collected={"unit": ["a", "b", "c", "d"]}), **changes)


def part(outcome=Outcome.PASSED, tests=None, planned=None, lane="unit", **more):
    """A part that took 100 s; `tests` are outcomes by name."""
    results = {name: Result(one, 3.0) for name, one in (tests or {}).items()}
    return PartResult(lane, outcome, 100.0, "pytest @x", planned=tuple(planned or results), tests=results, **more)


@pytest.mark.parametrize(
    ("text", "seconds"), [("", float("inf")), ("150m", 9000.0), ("2h", 7200.0), ("2h30m", 9000.0), ("0m", 0.0)]
)
def test_a_budget(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["150", "2.5h", "30m2h", "1d", "-5m"])
def test_an_invalid_budget(text):
    with pytest.raises(ValueError, match="150m, 2h or 2h30m"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("seconds", "longest", "chosen"),
    [
        (0.0, False, ""),
        (0.0, True, "a"),
        (9.9, False, ""),
        (10.0, False, "a"),
        (29.0, False, "a"),
        (30.0, False, "ab"),
        (34.9, False, "ab"),
        (35.0, False, "abc"),
        (99.0, True, "abc"),
    ],
)
def test_the_first_tests_that_fit(seconds, longest, chosen):
    """In order: a short test after a longer one that does not fit waits. At least one test runs in a full part."""
    estimates = {"a": 10.0, "b": 20.0, "c": 5.0}
    assert fitting(estimates, seconds, longest=longest) == tuple(chosen)


def test_a_part_has_as_many_tests_as_fit():
    """Estimates fill 29 of 40 minutes: two tests of ten minutes."""
    planned = plan_next([UNIT], a_night(), float("inf"))
    assert planned is not None
    assert (planned.tests, planned.number, planned.limit) == (("a", "b"), 1, PART_SECONDS)


def test_two_processes_run_twice_as_many():
    planned = plan_next([replace(UNIT, processes=2)], a_night(), float("inf"))
    assert planned is not None
    assert planned.tests == ("a", "b", "c", "d")


def test_a_known_duration_replaces_the_estimate():
    """Within the lane: over Spark Connect the same test takes another time."""
    seconds = {f"{lane} {test}": 1.0 for lane in ("unit",) for test in "abcd"} | {"connect a": 9000.0}
    planned = plan_next([UNIT], a_night(seconds=seconds), float("inf"))
    assert planned is not None
    assert planned.tests == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("left", "tests"), [(60.0, None), (879.0, None), (880.0, ("a",)), (1679.0, ("a",)), (1681.0, ("a", "b"))]
)
def test_a_budget_ends_between_two_parts(left, tests):
    """The next part has the remaining time; if not even one test fits, there is no part."""
    planned = plan_next([UNIT], a_night(), left)
    assert (planned and planned.tests) == tests
    assert planned is None or planned.limit == left


def test_a_program_runs_only_if_all_of_it_fits():
    assert plan_next([SOAK], a_night(), 1899.0) is None
    planned = plan_next([SOAK], a_night(), 1900.0)
    assert planned is not None
    assert (planned.seed, planned.limit) == (7, 1900.0)


def test_a_lane_that_does_not_fit_does_not_delay_others():
    planned = plan_next([SOAK, UNIT], a_night(), 1000.0)
    assert planned is not None
    assert planned.lane is UNIT


def test_each_part_of_a_program_has_a_seed_of_its_own():
    night = a_night(parts=[part(lane="soak")])
    planned = plan_next([SOAK], night, float("inf"))
    assert planned is not None
    assert (planned.number, planned.seed) == (2, 8)
    night.add(part(lane="soak"))
    assert plan_next([SOAK], night, float("inf")) is None
    assert is_complete(SOAK, night)


def test_the_next_call_resumes():
    """Finished tests are not run again, whether they passed or not; tests after the stop of a part are."""
    night = a_night(parts=[part(Outcome.STOPPED, {"a": "passed", "b": "failed"}, planned="abc", interrupted=("c",))])
    assert pending(UNIT, night) == ["c", "d"]
    assert not is_complete(UNIT, night)
    planned = plan_next([UNIT], night, float("inf"))
    assert planned is not None
    assert (planned.number, planned.tests) == (2, ("c", "d"))


def test_a_test_that_exceeds_two_parts_has_failed():
    stopped = replace(part(Outcome.STOPPED, {}, planned="ab", interrupted=("a",)), seconds=PART_SECONDS)
    night = a_night(parts=[stopped] * 2)
    assert pending(UNIT, night) == ["b", "c", "d"]
    assert summarize(UNIT, night).failed == 1


def test_the_tests_of_two_parts_without_a_started_test_have_failed():
    """Pytest hangs before the first test. A part that a signal stopped earlier is no attempt."""
    stuck = replace(part(Outcome.STOPPED, {}, planned="ab"), seconds=PART_SECONDS)
    night = a_night(parts=[stuck, replace(stuck, seconds=9.0)])
    assert pending(UNIT, night) == ["a", "b", "c", "d"]
    night.add(stuck)
    assert pending(UNIT, night) == ["c", "d"]
    assert (summarize(UNIT, night).failed, summarize(UNIT, night).result) == (2, "failed")


def test_a_part_in_which_a_test_ended_is_no_attempt_of_the_others():
    stopped = replace(part(Outcome.STOPPED, {"a": "passed"}, planned="abc"), seconds=PART_SECONDS)
    assert pending(UNIT, a_night(parts=[stopped, stopped])) == ["b", "c", "d"]


def test_a_part_at_the_end_of_a_budget_is_no_attempt():
    """The interrupted test then gets a whole part: it may take as long as the part that it was interrupted in."""
    night = a_night()
    for _ in range(3):
        night.add(replace(part(Outcome.STOPPED, {}, planned="ab", interrupted=("a",)), seconds=1500.0))
    assert pending(UNIT, night) == ["a", "b", "c", "d"]
    assert plan_next([UNIT], night, 1500.0) is None
    planned = plan_next([UNIT], night, float("inf"))
    assert planned is not None
    assert planned.tests == ("a",)


def test_a_crash_of_pytest_fails_the_planned_tests():
    """They would crash it again."""
    night = a_night(parts=[part(Outcome.FAILED, {"a": "passed"}, planned="abc")])
    assert pending(UNIT, night) == ["d"]
    found = summarize(UNIT, night)
    assert (found.passed, found.failed, found.result) == (1, 2, "failed")


@pytest.mark.parametrize(
    ("outcome", "tests", "hung"),
    [
        (Outcome.STOPPED, {"a": "passed", "b": "skipped"}, True),
        (Outcome.STOPPED, {"a": "passed", "b": "failed"}, True),
        (Outcome.STOPPED, {"a": "passed"}, False),
        (Outcome.PASSED, {"a": "passed", "b": "passed"}, False),
    ],
)
def test_a_part_that_is_stopped_after_its_last_test_has_hung(outcome, tests, hung):
    assert has_hung(part(outcome, tests, planned="ab")) == hung


def test_a_night_on_disk(tmp_path):
    """It is read unchanged."""
    file, night = tmp_path / "a" / "state.json", a_night(unprepared={"tidb": "no Go"})
    assert read_night(file) == Night("", 0)
    night.add(part(Outcome.STOPPED, {"a": "passed"}, planned="ab", interrupted=("b",), notes=("x",)))
    write_night(file, night)
    assert read_night(file) == night
    assert night.parts[0].commit == COMMIT


def test_the_lanes():
    """The lanes meet their requirements: names, a soak of 60 minutes, parts within the limit."""
    names = {lane.name for lane in LANES}
    suites = {"test", "long", "live", "crash", "tidb", "mysql97", "connect", "cluster"}
    assert names == {*suites, "mutation", "fuzz", "soak"}
    assert all(lane.seconds <= PART_SECONDS for lane in LANES if isinstance(lane, RunLane))
    (soak,) = (lane for lane in LANES if lane.name == "soak")
    assert isinstance(soak, RunLane)
    minutes = int(soak.arguments[soak.arguments.index("--minutes") + 1])
    assert minutes * soak.parts == 60
    (fuzz,) = (lane for lane in LANES if lane.name == "fuzz")
    assert "-max_total_time=600" in fuzz.command(7, JSON)
