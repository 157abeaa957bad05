"""docs/verification.md, as `make nightly` writes it."""

import subprocess

from tests.nightly.lanes import LANES
from tests.nightly.page import JSON, PAGE, read_verification, rendered


def test_the_committed_page_names_a_commit_of_the_history():
    """It is well-formed, has all lanes, and equals the page rendered from its JSON file."""
    found = read_verification(JSON)
    assert {lane.lane for lane in found.lanes} == {lane.name for lane in LANES}
    assert PAGE.read_text("utf-8") == rendered(found)
    known = subprocess.run(
        ["git", "merge-base", "--is-ancestor", found.commit, "HEAD"], capture_output=True, check=False
    )
    assert known.returncode == 0, known.stderr
