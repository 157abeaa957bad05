"""`make nightly`: the next part, resuming, and the page."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nightly import page
from tests.nightly.lanes import LANES, RunLane, SuiteLane
from tests.nightly.page import JSON, Verification, read_verification, rendered, summarize
from tests.nightly.plan import fitting, is_complete, parse_budget, pending, plan_next
from tests.nightly.running import read_reports, run_command
from tests.nightly.state import PART_SECONDS, Night, Outcome, PartResult, read_night, write_night
from tests.nightly.state import CaseResult as Result
from tests.support.relaying import wait_until

ROOT = Path(__file__).parents[3]
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
    (command,) = summarize(lane, a_night(parts=[part(Outcome.FAILED, {"t.py::x[a b]": "failed"})])).repeat
    assert command.startswith("env DMDELTA_TEST_SEED=7 ")
    assert command.endswith(" -m pytest 't.py::x[a b]' -m 'not long' --hypothesis-seed=7 --timeout 9")
    assert " -m tests.support.connect_server " in command


def test_the_figures_of_a_program():
    parts = [part(lane="soak", seed=seed, passed=9, faults=4, rows=1000, notes=("ok",)) for seed in (7, 8)]
    found = summarize(SOAK, a_night(parts=parts))
    assert (found.result, found.passed, found.faults, found.rows, found.seeds) == ("passed", 18, 8, 2000, (7, 8))
    failed = summarize(SOAK, a_night(parts=[replace(parts[0], outcome=Outcome.FAILED, command="soak --seed 7")]))
    assert (failed.result, failed.repeat) == ("failed", ("soak --seed 7",))


def test_a_night_on_disk(tmp_path):
    """It is read unchanged; on another commit, only the durations are."""
    file, night = tmp_path / "a" / "state.json", a_night(unprepared={"tidb": "no Go"})
    assert read_night(file, COMMIT).parts == []
    night.add(part(Outcome.STOPPED, {"a": "passed"}, planned="ab", interrupted=("b",), notes=("x",)))
    write_night(file, night)
    assert read_night(file, COMMIT) == night
    other = read_night(file, "f" * 40)
    assert (other.commit, other.parts, other.collected, other.seconds) == ("f" * 40, [], {}, night.seconds)


def test_reports_of_a_part_that_was_stopped(tmp_path):
    """A test that has only started has no result."""
    file = tmp_path / "reports.jsonl"
    assert read_reports(file) == ({}, ())
    lines = [
        {"begun": "a"},
        {"ended": "a", "outcome": "passed", "seconds": 1.5, "faults": 2},
        {"begun": "b"},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_reports(file) == ({"a": Result("passed", 1.5, 2)}, ("b",))


def test_a_failed_test_stays_failed(tmp_path):
    """Its process died or its teardown hangs: another one does not replace the failure."""
    file = tmp_path / "reports.jsonl"
    lines = [{"ended": "a", "outcome": outcome, "seconds": 1.0, "faults": 0} for outcome in ("failed", "passed")]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_reports(file) == ({"a": Result("failed", 1.0)}, ())


TESTS = """
import pytest

def test_good(): pass
def test_bad(): assert False
def test_left_out(): pytest.skip("no server")
def test_faults(record_property):
    record_property("cell", 1)
    record_property("cell", 2)
    record_property("faults", 7)
@pytest.fixture
def broken():
    yield
    raise ValueError
def test_teardown(broken): pass
def test_left_out_and_broken(broken): pytest.skip("no server")
"""
CRASH = """
import os

def test_crash(): os._exit(9)
def test_good(): pass
"""


def reported(folder, tests, *options):
    """The outcome of pytest on a file with these tests, and what the plugin has reported by test."""
    (folder / "test_some.py").write_text(tests)
    reports = folder / "reports.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", f"--rootdir={folder}", str(folder), *options]
    plugin = {"DMDELTA_REPORTS": str(reports), "PYTEST_PLUGINS": "tests.nightly.reports"}
    outcome = run_command(command, folder / "log", 120.0, plugin).outcome
    results, interrupted = read_reports(reports)
    return outcome, {test.partition("::")[2]: result for test, result in results.items()}, interrupted


@pytest.mark.parametrize("parallel", [[], ["-n", "2"]], ids=["one process", "two processes"])
def test_the_plugin_reports_each_test(tmp_path, parallel):
    """Each is reported once, also with pytest-xdist."""
    outcome, results, interrupted = reported(tmp_path, TESTS, *parallel)
    assert (outcome, interrupted) == (Outcome.FAILED, ())
    assert {test: (result.outcome, result.faults) for test, result in results.items()} == {
        "test_good": ("passed", 0),
        "test_bad": ("failed", 0),
        "test_left_out": ("skipped", 0),
        "test_faults": ("passed", 9),
        "test_teardown": ("failed", 0),
        "test_left_out_and_broken": ("failed", 0),
    }


def test_a_process_of_xdist_that_dies_fails_its_test(tmp_path):
    """Also if the part is stopped later: the test is not run again."""
    _, results, _ = reported(tmp_path, CRASH, "-n", "1")
    outcomes = {test: result.outcome for test, result in results.items()}
    assert outcomes == {"test_crash": "failed", "test_good": "passed"}


def test_a_part_is_stopped_at_its_limit(tmp_path):
    """With SIGINT, so that it stops the processes that it has started."""
    script = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('cleaned up')"
    ended = run_command([sys.executable, "-c", script], tmp_path / "log", 1.0)
    assert (ended.outcome, ended.log.read_text()) == (Outcome.STOPPED, "cleaned up\n")


def test_a_command_ends_with_its_killed_caller(tmp_path):
    """It must not write into the files of the next call."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    script = "import sys, time\nfrom pathlib import Path\nPath(sys.argv[1]).touch()\n"
    script += "try: time.sleep(60)\nexcept KeyboardInterrupt: Path(sys.argv[2]).touch()"
    command = [sys.executable, "-c", script, str(begun), str(ended)]
    call = "from pathlib import Path\nfrom tests.nightly.running import run_command\n"
    call += f"run_command({command!r}, Path({str(tmp_path / 'log')!r}), 60.0)"
    caller = subprocess.Popen([sys.executable, "-c", call], cwd=ROOT)
    wait_until(begun.exists, 60.0)
    caller.kill()
    caller.wait()
    wait_until(ended.exists, 60.0)


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
