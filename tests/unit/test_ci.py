"""CI's result of the checks, the tests and TiDB: the script itself, with stubs that only return an exit code."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "run"


@pytest.fixture
def run(tmp_path):
    """The script in a clone where `make` is a stub that records its targets, and so is TiDB's build."""

    def ended(*, build=0, failing="", latest=4200):
        script = tmp_path / ".ci" / "run"
        script.parent.mkdir()
        text = SCRIPT.read_text()
        assert "-gt 4200 " in text
        script.write_text(text.replace("-gt 4200 ", f"-gt {latest} "))
        script.chmod(0o755)
        made = tmp_path / "made"
        program(tmp_path / "bin" / "make", f'echo "$1" >> {made}; [ "$1" != "{failing}" ]')
        program(tmp_path / ".venv" / "bin" / "python", f"echo the build says; sleep 0.2; exit {build}")
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, made.read_text().split(), done.stdout

    return ended


def program(path, text):
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_tidb_is_built_and_tested(run):
    """TiDB's lane runs after the build has ended."""
    assert run() == (0, ["install", "check", "test", "test-tidb"], "")


def test_go_or_its_modules_cannot_be_fetched(run):
    """CI passes, and its last lines state what was not tested, and why."""
    code, made, said = run(build=75)
    assert (code, made) == (0, ["install", "check", "test"])
    why, *plainly = said.splitlines()
    assert why == "the build says"
    assert "nothing was tried on TiDB" in plainly[0]


def test_tidb_does_not_build(run):
    """CI fails with the output of the build."""
    code, made, said = run(build=1)
    assert (code, made) == (1, ["install", "check", "test"])
    assert said.splitlines() == ["the build says", "CI: TiDB does not build: see above"]


def test_no_time_is_left_for_tidb(run):
    """CI passes on a slow machine, and its last lines state what was not tested, and why."""
    code, made, said = run(latest=-1)
    assert (code, made) == (0, ["install", "check", "test"])
    assert "nothing was tried on TiDB: this took 0 of CI's 90 minutes" in said.splitlines()[0]


@pytest.mark.parametrize("failing", ["install", "check", "test", "test-tidb"])
def test_any_failing_step_fails_ci(run, failing):
    """No later step runs."""
    code, made, _ = run(failing=failing)
    assert code != 0
    assert made[-1] == failing
