"""A night with a small lane of each kind."""

import subprocess
import sys
from pathlib import Path

from tests.nightly.lanes import RunLane, SuiteLane
from tests.nightly.page import JSON, read_verification

ROOT = Path(__file__).parents[3]
TESTS = """
import pathlib
import pytest

def test_good(): pass
def test_left_out(): pytest.skip("no server")
def test_faults(record_property): record_property("faults", 1)
def test_bad(): assert not pathlib.Path("broken").exists()
"""
PROGRAM = """
import json, sys
json.dump({"passed": 5, "faults": 2, "rows": 1000, "notes": ["seed " + sys.argv[1]]}, open(sys.argv[2], "w"))
"""
SUITE = SuiteLane("suite", ("test_some.py",), "not long", 1.0, prepare=(sys.executable, "-c", "open('made', 'w')"))
LOAD = RunLane("load", ("load.py", "{seed}", "{json}"), seconds=30.0, parts=2)
SMALL = (SUITE, LOAD)


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def lanes_of(page: Path = JSON) -> dict[str, tuple[str, int, int, int]]:
    """The content of the written file: result, passed, failed and pending, by lane."""
    return {one.lane: (one.result, one.passed, one.failed, one.pending) for one in read_verification(page).lanes}
