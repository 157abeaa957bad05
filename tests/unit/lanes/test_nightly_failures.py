"""`make nightly` end to end: failures, signals, and changes meanwhile."""

import shlex
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.nightly import __main__
from tests.nightly.__main__ import main
from tests.nightly.lanes import FOLDER
from tests.nightly.page import JSON, PAGE, read_verification
from tests.support.relaying import wait_until
from tests.unit.lanes.small_night import LOAD, PROGRAM, SMALL, SUITE, TESTS, git, lanes_of


def test_a_failing_part_prints_the_command_that_repeats_it(repository, capsys):
    """For a test, and for a program with its seed; the other parts still run. The end of the call repeats them."""
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
    assert repeats[2:] == repeats[:2]
    assert all(f"`{repeat.removeprefix('repeat: ')}`" in PAGE.read_text() for repeat in repeats)
    repeated = subprocess.run(shlex.split(repeats[0])[1:], check=False, capture_output=True)
    assert repeated.returncode == 1


def test_a_signal_keeps_the_results(repository):
    """The next call runs the test that was interrupted, and those after it. Commands repeat the failures."""
    (repository / "broken").touch()
    (repository / "test_some.py").write_text(TESTS + "def test_slow(): __import__('time').sleep(60)\n")
    git("commit", "-qam", "a slow test")
    call = "from tests.unit.lanes.small_night import SMALL\nimport runpy, sys, signal\n"
    call += "from tests.nightly import __main__\nsignal.signal(signal.SIGTERM, signal.default_int_handler)\n"
    call += "__main__.main([], SMALL)"
    caller = subprocess.Popen([sys.executable, "-c", call], stdout=subprocess.PIPE, text=True)
    reports = repository / FOLDER / "suite-1.jsonl"
    wait_until(lambda: reports.exists() and '"begun": "test_some.py::test_slow"' in reports.read_text(), 60.0)
    with pytest.raises(SystemExit, match="another call is running"):
        main([], SMALL)
    caller.terminate()
    printed, _ = caller.communicate(timeout=60)
    assert caller.returncode
    assert lanes_of()["suite"] == ("failed", 2, 1, 1)
    repeats = [line for line in printed.splitlines() if line.startswith("repeat: ")]
    assert len(repeats) == 2
    assert all(" -m pytest test_some.py::test_bad " in repeat for repeat in repeats)


CHANGE = "pathlib.Path('load.py').write_text('')"
COMMIT = f"{CHANGE}\nsubprocess.run('git -c user.name=x -c user.email=x@example.com commit -qam x'.split())"


@pytest.mark.parametrize(("changes", "says"), [(CHANGE, r"load\.py"), (COMMIT, "the commit is")])
def test_a_change_of_the_code_during_a_part_is_no_result(repository, capsys, changes, says):
    """Its tests may have run on other code. A failure is still reported."""
    (repository / "load.py").write_text(f"import pathlib, subprocess\n{changes}\nraise SystemExit(1)")
    git("commit", "-qam", "changes itself")
    with pytest.raises(SystemExit, match=rf"the code changed during the part(.|\n)*{says}"):
        main(["--lanes", "load"], SMALL)
    assert "\nrepeat: " in capsys.readouterr().out
    assert lanes_of()["load"] == ("not run", 0, 0, 2)


def test_a_new_file_does_not_lose_the_results(repository):
    """A crashed JVM leaves one. The call continues; the next one begins without it."""
    (repository / "load.py").write_text(PROGRAM + "open('replay_pid7.txt', 'w')\n")
    git("commit", "-qam", "leaves a file")
    assert main(["--lanes", "load"], SMALL) == 0
    assert lanes_of()["load"] == ("passed", 10, 0, 0)
    with pytest.raises(SystemExit, match=r"commit or remove the changes first(.|\n)*replay_pid7\.txt"):
        main([], SMALL)


def test_a_lost_terminal_does_not_lose_the_results(repository, monkeypatch):
    """SIGHUP: nothing can be printed any more."""

    def fail(*_):
        raise BrokenPipeError

    monkeypatch.setattr(__main__, "_report", fail)
    with pytest.raises(BrokenPipeError):
        main(["--lanes", "load"], SMALL)
    assert lanes_of()["load"] == ("incomplete", 5, 0, 1)


def test_a_lane_of_which_nothing_passed_is_a_failure(repository):
    """All of its tests are skipped: nothing is left to run, and the call does not succeed."""
    (repository / "test_some.py").write_text("import pytest\ndef test_left_out(): pytest.skip('no server')\n")
    git("commit", "-qam", "skips all")
    assert main(["--lanes", "suite"], SMALL) == 1
    assert lanes_of()["suite"] == ("incomplete", 0, 0, 0)


def test_a_lane_whose_preparation_fails_has_failed(repository):
    """The other lanes run."""
    broken = replace(LOAD, prepare=(sys.executable, "-c", "raise SystemExit('no Go')"))
    assert main([], [broken, SUITE]) == 1
    assert lanes_of() == {"load": ("failed", 0, 0, 2), "suite": ("passed", 3, 0, 0)}
    (load, _) = read_verification(JSON).lanes
    assert [note.rpartition(" fails: ")[2] for note in load.notes] == ["no Go"]
    assert load.repeat == (shlex.join(broken.prepare),)
