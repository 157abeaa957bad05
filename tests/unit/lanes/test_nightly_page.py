"""`make nightly`: the results of lanes, the exit code, and the page."""

import json
from dataclasses import replace

import pytest

from tests.nightly import page
from tests.nightly.page import (
    UNFINISHED,
    Verification,
    exit_code,
    read_verification,
    rendered,
    repeat_commands,
    summarize,
)
from tests.nightly.plan import plan_next
from tests.nightly.state import Outcome
from tests.unit.lanes.test_nightly import COMMIT, SOAK, UNIT, a_night, part


def test_a_lane_that_cannot_be_prepared_has_failed():
    night = a_night(unprepared={"unit": "Go is missing"})
    assert plan_next([UNIT], night, float("inf")) is None
    found = summarize(replace(UNIT, prepare=("make", "tidb")), night)
    assert (found.result, found.repeat, found.notes) == ("failed", ("make tidb",), ("Go is missing",))


@pytest.mark.parametrize(
    ("parts", "result", "left"),
    [
        ([], "not run", 4),
        ([part(tests={"a": "passed"})], "incomplete", 3),
        ([part(tests=dict.fromkeys("abcd", "passed"))], "passed", 0),
        ([part(tests=dict.fromkeys("abc", "passed")), part(tests={"d": "skipped"})], "passed", 0),
        ([part(tests=dict.fromkeys("abcd", "skipped"))], "incomplete", 0),
        ([part(Outcome.FAILED, {"a": "failed"})], "failed", 3),
    ],
)
def test_the_result_of_a_lane_of_tests(parts, result, left):
    found = summarize(UNIT, a_night(parts=parts))
    assert (found.result, found.pending) == (result, left)
    assert found.seconds == 100.0 * len(parts)


def test_a_failure_is_repeated_by_one_command():
    """In the same way as the lane: over Spark Connect."""
    lane = replace(UNIT, beside="tests.support.connect_server", options=("--timeout", "9"))
    (command,) = summarize(lane, a_night(parts=[part(Outcome.FAILED, {"t.py::x[a b]": "failed"}, seed=7)])).repeat
    assert command.startswith("env DMDELTA_TEST_SEED=7 ")
    assert command.endswith(" -m pytest 't.py::x[a b]' -m 'not long' --hypothesis-seed=7 --timeout 9")
    assert " -m tests.support.connect_server " in command


def test_each_failed_part_has_a_command():
    """A hung part, too, if a test of another part failed."""
    hung = replace(part(Outcome.FAILED, {"b": "passed"}), command="pytest @hung")
    first, second = repeat_commands(UNIT, [part(Outcome.STOPPED, {"a": "failed"}, planned="a", seed=7), hung])
    assert " -m pytest a -m 'not long'" in first
    assert second == "pytest @hung"


ALL = dict.fromkeys("abcd", "passed")
LEFT = part(Outcome.STOPPED, {"a": "passed"}, planned="ab")


@pytest.mark.parametrize(
    ("suite", "programs", "code"),
    [
        ([part(tests=ALL)], [part(lane="soak", passed=1)] * 2, 0),
        ([part(tests=ALL)], [part(lane="soak", passed=1)], UNFINISHED),
        ([LEFT], [part(lane="soak", passed=1)] * 2, UNFINISHED),
        ([], [], UNFINISHED),
        ([part(tests=dict.fromkeys("abcd", "skipped"))], [part(lane="soak", passed=1)] * 2, 1),
        ([part(tests=ALL)], [part(lane="soak")] * 2, 1),
        ([part(tests=ALL | {"a": "failed"})], [], 1),
        ([LEFT], [part(Outcome.FAILED, lane="soak")], 1),
    ],
)
def test_the_exit_code(suite, programs, code):
    """0 only if all lanes passed. A lane that cannot pass any more, because nothing of it has passed, is a failure."""
    night = a_night(parts=[*suite, *programs])
    assert exit_code([summarize(lane, night) for lane in (UNIT, SOAK)]) == code


def test_a_program_that_reports_failures_may_pass():
    """Its exit code decides: `make mutation` counts survivors without a reason."""
    night = a_night(parts=[part(lane="soak", passed=170, failed=9)] * 2)
    found = summarize(SOAK, night)
    assert (found.result, found.failed, found.repeat) == ("passed", 18, ())


def test_the_figures_of_a_program():
    parts = [part(lane="soak", seed=seed, passed=9, faults=4, rows=1000, notes=("ok",)) for seed in (7, 8)]
    found = summarize(SOAK, a_night(parts=parts))
    assert (found.result, found.passed, found.faults, found.rows, found.seeds) == ("passed", 18, 8, 2000, (7, 8))
    failed = summarize(SOAK, a_night(parts=[replace(parts[0], outcome=Outcome.FAILED, command="soak --seed 7")]))
    assert (failed.result, failed.repeat) == ("failed", ("soak --seed 7",))


def test_the_page_round_trips(tmp_path):
    """The page and the file have the same content."""
    lanes = (summarize(UNIT, a_night(parts=[part(Outcome.FAILED, {"a": "failed"})])), summarize(SOAK, a_night()))
    found = Verification(COMMIT, "2026-11-25", ("cores 2", "cores 4"), lanes)
    file = tmp_path / "verification.json"
    file.write_text(json.dumps(page.asdict(found)))
    assert read_verification(file) == found
    text = rendered(found)
    assert f"Commit `{COMMIT}`, 2026-11-25.\n\nMachine: cores 2.\n\nMachine: cores 4.\n" in text
    assert "| unit | failed | 0 | 1 | 0 | 3 | 2 |  |  |  |" in text
    assert "| soak | not run | 0 | 0 | 0 | 2 | 0 |  |  |  |" in text
    assert f"- unit: `{lanes[0].repeat[0]}`" in text
