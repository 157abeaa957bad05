"""`make nightly`: a part runs, is stopped or hangs, and reports its tests."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly import running
from tests.nightly.page import summarize
from tests.nightly.plan import Part
from tests.nightly.reports import VARIABLE
from tests.nightly.running import Ended, read_reports, run_command, run_part
from tests.nightly.state import CaseResult as Result
from tests.nightly.state import Outcome
from tests.support.relaying import wait_until
from tests.unit.lanes.test_nightly import UNIT, a_night

ROOT = Path(__file__).parents[3]


def run_stopped(monkeypatch, folder, tests):
    """Run a part of two tests that is stopped at its limit, after these have passed; whether pytest had only to end."""
    done = []

    def run(_command, log, limit, more, is_done):
        lines = [{"ended": test, "outcome": "passed", "seconds": 1.0, "faults": 0} for test in tests]
        Path(more[VARIABLE]).write_text("".join(json.dumps(line) + "\n" for line in lines))
        done.append(is_done())
        return Ended(None, limit, log)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(running, "run_command", run)
    return run_part(Part(UNIT, 1, 60.0, 7, ("a", "b"))), *done


def test_a_session_that_hangs_after_its_last_test_has_failed(monkeypatch, tmp_path):
    """One command repeats the part, because no test has failed."""
    hung, done = run_stopped(monkeypatch, tmp_path, "ab")
    assert (hung.outcome, done) == (Outcome.FAILED, True)
    found = summarize(UNIT, a_night(parts=[hung]))
    assert (found.passed, found.failed, found.result, found.repeat) == (2, 0, "failed", (hung.command,))
    stopped, done = run_stopped(monkeypatch, tmp_path, "a")
    assert (stopped.outcome, done) == (Outcome.STOPPED, False)


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
    record_property("cell", "silver, kill")
    record_property("faults", 2)
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


@pytest.mark.parametrize(("seconds", "outcome"), [(3, Outcome.PASSED), (60, Outcome.STOPPED)])
def test_a_command_that_has_only_to_end_has_time_after_its_limit(tmp_path, monkeypatch, seconds, outcome):
    monkeypatch.setattr(running, "STOP_SECONDS", 20.0 if outcome is Outcome.PASSED else 0.5)
    command = [sys.executable, "-c", f"import time\ntime.sleep({seconds})"]
    assert run_command(command, tmp_path / "log", 0.5, is_done=lambda: True).outcome is outcome


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
