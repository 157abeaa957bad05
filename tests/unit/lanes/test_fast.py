"""`make test-fast`: the list of its tests on a server."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.nightly.lanes import SuiteLane
from tests.nightly.running import collect

LIST = Path(__file__).parents[2] / "fast.txt"
LANE = SuiteLane("fast", (f"@{LIST}",), "not long", test_seconds=30.0)


def test_the_lane_runs_each_test_of_the_list():
    """A renamed or removed test is an error. A test that is long would be left out silently."""
    lines = LIST.read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) > 0
    listed = collect(replace(LANE, marks=""))
    for line in lines:
        assert any(test.startswith(line) for test in listed), f"{LIST.name}: {line} has no tests"
    assert collect(LANE) == listed


LONG = """
import pytest
pytestmark = pytest.mark.long
def test_some(): pass
"""
LONG_PARAMETER = """
import pytest
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.long)])
def test_some(n): pass
"""


@pytest.mark.parametrize("tests", [LONG, LONG_PARAMETER])
def test_collecting_notices_a_long_test(tests, tmp_path, monkeypatch):
    """Whether its module or a parameter is long."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_some.py").write_text(tests)
    (tmp_path / "test_other.py").write_text("def test_other(): pass")
    (tmp_path / "list.txt").write_text("test_some.py\ntest_other.py\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    lane = replace(LANE, paths=("@list.txt",))
    assert set(collect(lane)) < set(collect(replace(lane, marks="")))
