"""What the committed file stores of a night: results by test, seeds and durations."""

import json
from dataclasses import replace

from tests.nightly.committed import known_seconds, read_stored, resumed_night, stored_night
from tests.nightly.lanes import RunLane, SuiteLane
from tests.nightly.page import summarize
from tests.nightly.plan import estimate, pending, plan_next
from tests.nightly.state import PART_SECONDS, CaseResult, Night, Outcome, PartResult

COMMIT = "3d43afd00000000000000000000000000000000a"
UNIT = SuiteLane("unit", ("tests/unit",), "not long", test_seconds=600.0)
SOAK = RunLane("soak", ("-m", "soak", "--seed", "{seed}", "--json", "{json}"), seconds=1900.0, parts=2)
TESTS = [f"{file}.py::test_{number}" for file in "ab" for number in range(5)]


def part(outcome, first, last, *, failed=(), skipped=(), **more):
    """A part in which a range of the tests ended."""
    kinds = dict.fromkeys(failed, "failed") | dict.fromkeys(skipped, "skipped")
    ended = {TESTS[number]: CaseResult(kinds.get(number, "passed"), 2.0 + 10 * number) for number in range(first, last)}
    more = {"planned": tuple(ended), "seconds": 100.0, **more}
    return PartResult("unit", outcome, command="pytest @x", tests=ended, **more)


def a_night(*parts):
    night = Night(COMMIT, int(COMMIT[:8], 16) % 1_000_000, collected={"unit": TESTS})
    for one in parts:
        night.add(one)
    return night


def resumed(night, tests=TESTS):
    """The night after a commit, in a fresh checkout."""
    return resumed_night(json.loads(json.dumps(stored_night(night))), COMMIT, [UNIT, SOAK], lambda _: list(tests))


def test_a_night_resumes_where_it_stopped():
    """Summaries and remaining tests are the same: after a stop, failures, a crash of pytest, and a program."""
    night = a_night(
        part(Outcome.FAILED, 0, 4, failed=(1,), skipped=(2,), faults=3, date="2026-11-25"),
        part(Outcome.STOPPED, 4, 6, planned=tuple(TESTS[4:8]), interrupted=(TESTS[6],)),
        part(Outcome.FAILED, 8, 9, planned=tuple(TESTS[8:])),
        PartResult("soak", Outcome.PASSED, 9.0, "soak", seed=7, passed=2, rows=9, notes=("ok",), date="2026-11-26"),
    )
    found = resumed(night)
    assert [summarize(lane, found) for lane in (UNIT, SOAK)] == [summarize(lane, night) for lane in (UNIT, SOAK)]
    assert pending(UNIT, found) == pending(UNIT, night) == TESTS[6:8]
    assert (found.seed, found.parts[0].date, found.parts[3]) == (night.seed, "2026-11-25", night.parts[3])
    assert resumed(found).parts == found.parts


def test_a_test_that_exceeds_its_second_part_elsewhere_has_failed():
    """The attempts of both machines count."""
    stopped = replace(
        part(Outcome.STOPPED, 0, 2, planned=tuple(TESTS[:3]), interrupted=(TESTS[2],)), seconds=PART_SECONDS
    )
    found = resumed(a_night(stopped))
    assert pending(UNIT, found)[0] == TESTS[2]
    found.add(replace(stopped, tests={}))
    assert pending(UNIT, found)[0] == TESTS[3]
    assert summarize(UNIT, found).failed == 1


def test_tests_of_a_second_part_elsewhere_that_starts_none_have_failed():
    """Pytest hangs before the first test."""
    stuck = part(Outcome.STOPPED, 0, 0, planned=tuple(TESTS[:3]), seconds=PART_SECONDS)
    found = resumed(a_night(stuck))
    assert pending(UNIT, found) == TESTS
    assert resumed(found).parts == found.parts
    found.add(stuck)
    assert pending(UNIT, found) == TESTS[3:]


def test_a_lane_with_other_tests_restarts():
    """Other lanes resume."""
    soak = PartResult("soak", Outcome.PASSED, 9.0, "soak", seed=7)
    found = resumed(a_night(part(Outcome.PASSED, 0, 9), soak), [*TESTS, "c.py::test_0"])
    assert ([one.lane for one in found.parts], len(pending(UNIT, found))) == (["soak"], 11)


def test_a_preparation_is_retried():
    """What was missing on the other machine may exist on this one."""
    night = a_night(part(Outcome.PASSED, 0, 9))
    night.unprepared["unit"] = "Go is missing"
    planned = plan_next([UNIT], resumed(night), float("inf"))
    assert planned is not None
    assert planned.tests == (TESTS[9],)


def test_long_tests_have_durations_and_files_a_mean():
    """The first file has one short test, the second none."""
    stored = stored_night(a_night(part(Outcome.PASSED, 0, 7)))
    assert stored["seconds"] == {
        "unit": {
            "a.py": 2.0,
            **{TESTS[number]: 2.0 + 10 * number for number in range(1, 5)},
            TESTS[5]: 52.0,
            TESTS[6]: 62.0,
        }
    }


def test_durations_plan_another_commit():
    """The estimate for a new test in a known file is the mean of the file."""
    night = Night("f" * 40, 1, seconds=known_seconds(stored_night(a_night(part(Outcome.PASSED, 0, 7)))))
    asked = ["a.py::test_new", "a.py::test_3", "b.py::test_0", "b.py::test_new"]
    assert [estimate(UNIT, night, test) for test in asked] == [2.0, 32.0, 52.0, 600.0]


def test_durations_stay_until_newer_ones_are_known():
    """A mean that is only known from the file is kept; removed tests are not."""
    night = Night(COMMIT, 1, seconds=known_seconds(stored_night(a_night(part(Outcome.PASSED, 0, 7)))))
    night.collected["unit"] = ["a.py::test_0", "a.py::test_1"]
    assert stored_night(night)["seconds"] == {"unit": {"a.py": 2.0, "a.py::test_1": 12.0}}
    night.seconds["unit a.py::test_0"] = 4.0
    assert stored_night(night)["seconds"]["unit"]["a.py"] == 4.0


def test_a_page_without_a_night(tmp_path):
    """No page was committed, or one of an older format."""
    file = tmp_path / "verification.json"
    assert read_stored(file) == ("", {})
    file.write_text('{"commit": "c0ffee"}')
    assert read_stored(file) == ("", {})
    assert known_seconds({}) == {}
