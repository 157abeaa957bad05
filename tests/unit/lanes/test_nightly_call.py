"""`make nightly` end to end: calls with small lanes, in a temporary repository."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nightly.__main__ import UNFINISHED, chosen_lanes, code_commit, main, run
from tests.nightly.lanes import FOLDER, LANES, RunLane, SuiteLane
from tests.nightly.page import JSON, PAGE, read_verification
from tests.nightly.state import Night
from tests.support.relaying import wait_until

ROOT = Path(__file__).parents[3]
TESTS = """
import pathlib
import pytest

def test_good(): pass
def test_left_out(): pytest.skip("no server")
def test_faults(record_property): record_property("cell", 1)
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


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository as the current folder, with one commit of a test file and a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "load.py").write_text(PROGRAM)
    (tmp_path / ".gitignore").write_text("var\nmade\nbroken\n.pytest_cache\n__pycache__\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "docs").mkdir()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    return tmp_path


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


def lanes_of(page: Path = JSON) -> dict[str, tuple[str, int, int, int]]:
    """The content of the written file: result, passed, failed and pending, by lane."""
    return {one.lane: (one.result, one.passed, one.failed, one.pending) for one in read_verification(page).lanes}


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


def test_a_failing_part_prints_the_command_that_repeats_it(repository, capsys):
    """For a test, and for a program with its seed; the other parts still run."""
    (repository / "broken").touch()
    (repository / "load.py").write_text("import sys\nsys.exit(int(sys.argv[1]) % 2)")
    git("commit", "-qam", "fails with odd seeds")
    assert main([], SMALL) == 1
    assert lanes_of() == {"suite": ("failed", 2, 1, 0), "load": ("failed", 0, 0, 0)}
    repeats = [line for line in capsys.readouterr().out.splitlines() if line.startswith("repeat: ")]
    seed = int(git("rev-parse", "HEAD")[:8], 16) % 1_000_000
    odd = seed if seed % 2 else seed + 1
    assert repeats[0].endswith(f" -m pytest test_some.py::test_bad -m 'not long' --hypothesis-seed={seed}")
    assert f" load.py {odd} " in repeats[1]
    assert len(repeats) == 2
    assert all(f"`{repeat.removeprefix('repeat: ')}`" in PAGE.read_text() for repeat in repeats)
    repeated = subprocess.run(shlex.split(repeats[0])[1:], check=False, capture_output=True)
    assert repeated.returncode == 1


def test_a_signal_keeps_the_results(repository):
    """The next call runs the test that was interrupted, and those after it."""
    (repository / "test_some.py").write_text(TESTS + "def test_slow(): __import__('time').sleep(60)\n")
    git("commit", "-qam", "a slow test")
    call = "from tests.unit.lanes.test_nightly_call import SMALL\nimport runpy, sys, signal\n"
    call += "from tests.nightly import __main__\nsignal.signal(signal.SIGTERM, signal.default_int_handler)\n"
    call += "__main__.main([], SMALL)"
    caller = subprocess.Popen([sys.executable, "-c", call])
    reports = repository / FOLDER / "suite-1.jsonl"
    wait_until(lambda: reports.exists() and '"begun": "test_some.py::test_slow"' in reports.read_text(), 60.0)
    with pytest.raises(SystemExit, match="another call is running"):
        main([], SMALL)
    caller.terminate()
    assert caller.wait(60)
    assert lanes_of()["suite"] == ("incomplete", 3, 0, 1)


def test_a_commit_during_a_part_is_no_result(repository):
    """Its tests may have run on other code."""
    (repository / "load.py").write_text("import pathlib; pathlib.Path('load.py').write_text('')")
    git("commit", "-qam", "changes itself")
    with pytest.raises(SystemExit, match=r"commit or remove the changes(.|\n)*load\.py"):
        main(["--lanes", "load"], SMALL)
    assert lanes_of()["load"] == ("not run", 0, 0, 2)


def test_a_lane_whose_preparation_fails_has_failed(repository):
    """The other lanes run."""
    broken = replace(LOAD, prepare=(sys.executable, "-c", "raise SystemExit('no Go')"))
    assert main([], [broken, SUITE]) == 1
    assert lanes_of() == {"load": ("failed", 0, 0, 2), "suite": ("passed", 3, 0, 0)}
    (load, _) = read_verification(JSON).lanes
    assert [note.rpartition(" fails: ")[2] for note in load.notes] == ["no Go"]
    assert load.repeat == (shlex.join(broken.prepare),)


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
