"""Named points at which a process can be killed: by an environment variable, or by a file created later."""

import signal
import subprocess
import sys

import pytest

from dmdelta.failpoint import VARIABLE, CrashPoint

PASSES = f"""
from dmdelta.failpoint import CrashPoint, reach
for number in range(3):
    print(number, flush=True)
    reach(CrashPoint("{CrashPoint.LAND_BEFORE_COMMIT.value}"))
    reach(CrashPoint("{CrashPoint.LAND_AFTER_COMMIT.value}"))
"""


def passed(setting):
    """(exit code, started passes) of a process that passes two points three times."""
    done = subprocess.run(
        [sys.executable, "-c", PASSES], env={VARIABLE: setting}, stdout=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, len(done.stdout.split())


@pytest.mark.parametrize(("point", "died_in"), [("land-after-commit", 1), ("land-after-commit:2", 2)])
def test_the_environment_selects_point_and_pass(point, died_in):
    assert passed(point) == (-signal.SIGKILL, died_in)


@pytest.mark.parametrize("point", ["silver-before-commit", "land-after-commit:4"])
def test_other_points_are_passed(point):
    assert passed(point) == (0, 3)


def test_a_file_kills_one_process(tmp_path):
    """The first process that reaches the point is killed; the next one survives, with or without the file."""
    file = tmp_path / "failpoint"
    file.write_text("land-before-commit:3")
    assert passed(f"@{file}") == (-signal.SIGKILL, 3)
    assert not file.exists()
    assert passed(f"@{file}") == (0, 3)
