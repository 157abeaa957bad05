"""`make nightly` end to end: calls with small lanes, in a temporary repository."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nightly.__main__ import chosen_lanes, code_commit, main, run
from tests.nightly.lanes import LANES
from tests.nightly.page import JSON, PAGE, UNFINISHED, read_verification
from tests.nightly.state import Night
from tests.unit.lanes.small_night import LOAD, PROGRAM, SMALL, git, lanes_of


def commit_of(file: Path) -> str:
    file.parent.mkdir(exist_ok=True)
    file.write_text(file.name)
    git("add", ".")
    git("commit", "-qm", f"adds {file.name}")
    return git("rev-parse", "HEAD")


def test_results_are_no_change_of_the_code(repository):
    """The pages of a night and of benchmarks are committed after they were measured; a benchmark itself is code."""
    code = git("rev-parse", "HEAD")
    for page in (JSON, PAGE, Path("benchmarks/SINK.md")):
        commit_of(repository / page)
        assert code_commit() == code
    (repository / "benchmarks" / "SINK.md").write_text("not committed yet")
    assert code_commit() == code
    for changed in ("benchmarks/sink.py", "docs/sink.md"):
        code = commit_of(repository / changed)
        assert code_commit() == code


def test_a_call_runs_the_remaining_parts(repository, capsys):
    """Nothing fits, then one lane, then the rest; a further call runs nothing again."""
    assert main(["--budget", "0m"], SMALL) == UNFINISHED
    assert lanes_of() == {"suite": ("not run", 0, 0, 4), "load": ("not run", 0, 0, 2)}
    assert main(["--lanes", "suite"], SMALL) == 0
    assert lanes_of() == {"suite": ("passed", 3, 0, 0), "load": ("not run", 0, 0, 2)}
    assert (repository / "made").exists()
    assert main([], SMALL) == 0
    capsys.readouterr()
    written = JSON.read_bytes()
    assert main([], SMALL) == 0
    assert capsys.readouterr().out == "nightly: suite passed, load passed\n"
    assert JSON.read_bytes() == written


def test_the_page_has_each_figure(repository):
    """Commit, date, machine, and for each lane passed, failed, duration, faults, rows and seeds."""
    assert main([], SMALL) == 0
    stored = json.loads(JSON.read_text())
    suite, load = stored["lanes"]
    seed = int(stored["commit"][:8], 16) % 1_000_000
    assert stored["commit"] == git("rev-parse", "HEAD")
    assert len(stored["date"].split("-")) == 3
    (machine,) = stored["machines"]
    assert {fact.split()[0] for fact in machine.split(", ")} >= {"system", "cores", "memory", "python"}
    assert (suite["passed"], suite["failed"], suite["skipped"], suite["faults"]) == (3, 0, 1, 1)
    assert (load["passed"], load["faults"], load["rows"], load["seeds"]) == (10, 4, 2000, [seed, seed + 1])
    assert load["notes"] == [f"seed {seed}", f"seed {seed + 1}"]
    assert suite["seconds"] > 0
    page = PAGE.read_text()
    assert f"Commit `{stored['commit']}`, {stored['date']}.\n\nMachine: system " in page
    assert f"| load | passed | 10 | 0 | 0 | 0 | 0 | 4 | 2,000 | {seed}, {seed + 1} |" in page


def test_committing_the_pages_does_not_start_another_night(repository):
    """A commit of anything else does."""
    assert main([], SMALL) == 0
    tested = read_verification(JSON).commit
    git("add", "docs")
    git("commit", "-qm", "the pages")
    assert main(["--budget", "0m"], SMALL) == 0
    assert read_verification(JSON).commit == tested
    (repository / "load.py").write_text(PROGRAM + "\n")
    with pytest.raises(SystemExit, match=r"commit or remove the changes first(.|\n)*load\.py"):
        main([], SMALL)
    git("commit", "-qam", "another")
    assert main(["--budget", "0m"], SMALL) == UNFINISHED
    assert read_verification(JSON).commit != tested


def fresh_checkout() -> None:
    """Assert that there are no uncommitted changes."""
    git("add", "docs")
    git("commit", "-qm", "the pages")
    git("clean", "-qxdf")


def test_a_fresh_checkout_resumes_the_committed_night(repository, capsys):
    """Passed tests are not run again; failures, figures and seeds remain on the page."""
    (repository / "broken").touch()
    assert main(["--lanes", "suite"], SMALL) == 1
    before = read_verification(JSON)
    fresh_checkout()
    capsys.readouterr()
    assert main(["--budget", "0m"], SMALL) == 1
    assert "suite, part" not in capsys.readouterr().out
    assert read_verification(JSON) == before
    assert main([], SMALL) == 1
    assert lanes_of() == {"suite": ("failed", 2, 1, 0), "load": ("passed", 10, 0, 0)}
    assert read_verification(JSON).lanes[0] == before.lanes[0]
    fresh_checkout()
    assert main([], SMALL) == 1
    assert lanes_of() == {"suite": ("failed", 2, 1, 0), "load": ("passed", 10, 0, 0)}


def test_a_lane_that_collects_other_tests_restarts(repository, capsys):
    """Its results are stored by the index of tests in pytest's order."""
    assert main(["--lanes", "suite"], SMALL) == 0
    stored = json.loads(JSON.read_text())
    stored["night"]["collected"]["suite"] = "9 tests, f00"
    JSON.write_text(json.dumps(stored))
    fresh_checkout()
    assert main(["--budget", "0m"], SMALL) == UNFINISHED
    assert "suite: other tests than" in capsys.readouterr().out
    assert lanes_of()["suite"] == ("not run", 0, 0, 4)


def test_a_preparation_is_part_of_the_budget(repository):
    """The budget stops it, and the next call restarts it."""
    slow = replace(LOAD, seconds=1.0, prepare=(sys.executable, "-c", "import time\ntime.sleep(60)"))
    night, published = Night(code_commit(), 7), []
    run(night, [slow], 3.0, lambda: published.append(len(night.parts)))
    assert (night.parts, night.unprepared) == ([], {})
    assert published == [0]
    run(night, [replace(slow, prepare=())], 60.0, lambda: published.append(len(night.parts)))
    assert published[-1] == 2


def test_lanes_are_chosen_by_name():
    """All without names; an unknown name is an error."""
    assert chosen_lanes("", LANES) == list(LANES)
    assert [lane.name for lane in chosen_lanes("soak,fuzz", LANES)] == ["fuzz", "soak"]
    with pytest.raises(ValueError, match="no lane sok; lanes: test, mutation, crash"):
        chosen_lanes("sok,fuzz", LANES)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["--lanes", "sok"], "no lane sok; lanes: suite, load"), (["--budget", "90"], "BUDGET=90: write minutes")],
)
def test_a_call_with_a_mistake_runs_nothing(repository, capsys, arguments, complaint):
    with pytest.raises(SystemExit, match="2"):
        main(arguments, SMALL)
    assert complaint in capsys.readouterr().err
    assert not (repository / JSON).exists()
