"""docs/verification.md, as `make nightly` writes it."""

import subprocess

from tests.nightly.committed import read_stored
from tests.nightly.lanes import LANES
from tests.nightly.page import JSON, PAGE, read_verification, rendered


def test_the_committed_page_names_a_commit_of_the_history():
    """It is well-formed, has all lanes, and equals the page rendered from its JSON file."""
    found = read_verification(JSON)
    assert {lane.lane for lane in found.lanes} == {lane.name for lane in LANES}
    assert PAGE.read_text("utf-8") == rendered(found)
    for commit in (found.commit, *found.earlier):
        known = subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], capture_output=True, check=False)
        assert known.returncode == 0, known.stderr


def test_the_committed_page_has_the_results_of_its_parts():
    """A lane that is shown as passed has passed tests only, and all of them; the numbers are those of the parts.

    A program may report failures and pass.
    """
    _, night = read_stored(JSON)
    for lane in read_verification(JSON).lanes:
        parts = [part for part in night["parts"] if part["lane"] == lane.lane]
        outcomes = {part["outcome"] for part in parts}
        if lane.result == "passed":
            assert (lane.pending, lane.repeat) == (0, ())
            assert not lane.failed or lane.lane not in night["collected"]
            assert lane.passed > 0
            assert "failed" not in outcomes
        if lane.lane in night["collected"]:
            kinds = {kind: {test for part in parts for test in part["tests"][kind]} for kind in ("failed", "skipped")}
            ended = {
                test for part in parts for first, last in part["tests"]["passed"] for test in range(first, last + 1)
            }
            assert (lane.passed, lane.skipped) == (len(ended), len(kinds["skipped"]))
            assert lane.failed >= len(kinds["failed"])
        else:
            assert lane.passed == sum(part["passed"] for part in parts)
