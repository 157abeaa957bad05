"""Named points at which a process may die: by the environment, or by a file that appears later."""

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
    """(exit code, passes begun) of a process that goes three times through two points."""
    done = subprocess.run(
        [sys.executable, "-c", PASSES], env={VARIABLE: setting}, stdout=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, len(done.stdout.split())


@pytest.mark.parametrize(("point", "died_in"), [("land-after-commit", 1), ("land-after-commit:2", 2)])
def test_the_environment_names_point_and_passing(point, died_in):
    assert passed(point) == (-signal.SIGKILL, died_in)


@pytest.mark.parametrize("point", ["silver-before-commit", "land-after-commit:4"])
def test_other_points_are_passed(point):
    assert passed(point) == (0, 3)


def test_a_file_arms_one_death(tmp_path):
    """The first process that comes to the point dies; the next one lives, and so it does without a file."""
    file = tmp_path / "failpoint"
    file.write_text("land-before-commit:3")
    assert passed(f"@{file}") == (-signal.SIGKILL, 3)
    assert not file.exists()
    assert passed(f"@{file}") == (0, 3)
