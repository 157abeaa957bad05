"""`make nightly` after a commit that changes tests only: which results count for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.nightly.__main__ import affected_since, main
from tests.nightly.kept import kept_night, limited_part, plan_affected, used_files
from tests.nightly.lanes import LANES, RunLane, SuiteLane
from tests.nightly.page import JSON as FILE
from tests.nightly.page import PAGE, read_verification, repeat_commands, summarize
from tests.nightly.plan import pending
from tests.nightly.state import CaseResult, Night, Outcome, PartResult
from tests.unit.lanes.small_night import LOAD, PROGRAM, git, lanes_of

SOURCES = {
    "tests/conftest.py": "from tests.support.servers import running\n",
    "tests/spark/conftest.py": "",
    "tests/spark/test_commits.py": "from tests.support import rows\n",
    "tests/spark/test_types.py": "import dmdelta\n",
    "tests/integration/test_sink.py": "COMMAND = [python, '-m', 'tests.support.process']\n",
    "tests/integration/test_tidb.py": "from tests.integration.test_sink import write\n",
    "tests/spark/test_tutorial.py": "PAGE = ROOT / 'docs' / 'tutorial.md'\n",
    "tests/mutation/accepted.py": "FILE = Path(__file__).with_name('accepted.yml')\n",
    "tests/support/rows.py": "",
    "tests/support/process.py": "from tests.support.rows import Row\n",
    "tests/support/servers/__init__.py": "",
    "tests/soak/__main__.py": "import tests.soak.faults\n",
    "tests/soak/faults.py": "",
}


@pytest.mark.parametrize(
    ("changed", "affected"),
    [
        ([], ""),
        (["tests/spark/test_types.py"], "spark/test_types"),
        (["tests/integration/test_sink.py"], "integration/test_sink integration/test_tidb"),
        (["tests/support/process.py"], "support/process integration/test_sink integration/test_tidb"),
        (
            ["tests/support/rows.py"],
            "support/rows support/process spark/test_commits integration/test_sink integration/test_tidb",
        ),
        (["tests/spark/conftest.py"], "spark/conftest spark/test_commits spark/test_types spark/test_tutorial"),
        (["tests/soak/faults.py"], "soak/faults soak/__main__"),
        (["tests/support/removed.py"], "support/removed"),
        (["tests/mutation/accepted.yml"], "../tests/mutation/accepted.yml mutation/accepted"),
        (["docs/tutorial.md", "README.md"], "../docs/tutorial.md ../README.md spark/test_tutorial"),
    ],
)
def test_files_that_use_a_changed_file_are_affected(changed, affected):
    """By an import, by a conftest.py, by a command in a text, or by the name of a document or YAML file."""
    names = [f"tests/{name}.py" if "." not in name else name.removeprefix("../") for name in affected.split()]
    assert plan_affected(changed, SOURCES) == set(names)


def test_a_fixture_for_all_tests_affects_all():
    assert plan_affected(["tests/support/servers/__init__.py"], SOURCES) >= {
        path for path in SOURCES if "test_" in path
    }


@pytest.mark.parametrize(
    "changed",
    [
        "dmdelta/cli/main.py",
        "pyproject.toml",
        "deploy/a.yml",
        "tests/golden/a.txt",
        "tests/nightly/lanes.py",
        "contest.py",
    ],
)
def test_another_change_affects_everything(changed):
    assert plan_affected(["tests/spark/test_types.py", changed], SOURCES) is None


def test_a_name_is_a_module_a_package_or_what_one_of_them_contains():
    used = set(used_files("tests/a/test_x.py", "import tests.support.jvm\n"))
    assert used >= {"tests/support/jvm.py", "tests/support/jvm/__init__.py", "tests/support/jvm/__main__.py"}
    assert used >= {"tests/support.py", "tests/support/__init__.py", "tests/a/conftest.py", "tests/conftest.py"}


OLD, NEW = "a" * 40, "b" * 40
SUITE = SuiteLane("suite", ("tests",), "not long", 1.0)
TESTS = [f"tests/spark/test_{file}.py::test_{number}" for file in "ab" for number in range(3)]
LEFT = TESTS[:3]


def part(outcome, ended, *, lane="suite", **more):
    """A part of all tests; `ended` has an outcome for each of the first ones: p, f or s."""
    kinds = {"p": "passed", "f": "failed", "s": "skipped"}
    tests = {test: CaseResult(kinds[kind], 1.0, faults=1) for test, kind in zip(TESTS, ended, strict=False)}
    more = {"planned": tuple(TESTS), "faults": len(tests), "seed": 5, **more}
    return PartResult(lane, outcome, 9.0, "pytest @x", tests=tests, **more)


def kept(*parts, affected=("tests/spark/test_b.py",), lanes=(SUITE,), collected=TESTS):
    night = Night(OLD, 5, collected={"suite": TESTS})
    for one in parts:
        night.add(one)
    return kept_night(night, NEW, frozenset(affected), lanes, lambda _: list(collected))


@pytest.mark.parametrize(
    ("outcome", "ended", "result", "left"),
    [
        (Outcome.PASSED, "pppppp", "incomplete", TESTS[3:]),
        (Outcome.FAILED, "pppppf", "incomplete", TESTS[3:]),
        (Outcome.FAILED, "fppppf", "failed", TESTS[3:]),
        (Outcome.FAILED, "pp", "failed", TESTS[3:]),
        (Outcome.STOPPED, "pp", "incomplete", TESTS[2:]),
    ],
)
def test_results_of_other_files_are_kept(outcome, ended, result, left):
    """A failure in a file that has not changed, or of pytest itself, remains."""
    night = kept(part(outcome, ended))
    found = summarize(SUITE, night)
    assert (night.commit, found.result, pending(SUITE, night)) == (NEW, result, left)
    assert found.passed == ended[:3].count("p")
    assert found.faults == min(3, len(ended))
    assert night.parts[0].commit == OLD


def test_a_crash_in_an_affected_test_is_repeated():
    """And with it the tests that did not run because of it."""
    crashed = part(Outcome.FAILED, "p", interrupted=(TESTS[3],))
    assert pending(SUITE, kept(crashed)) == TESTS[1:]
    assert limited_part(replace(crashed, interrupted=(TESTS[1],)), LEFT).outcome is Outcome.FAILED


def test_removed_and_new_tests():
    night = kept(part(Outcome.PASSED, "pppppp"), collected=[*TESTS[1:3], "tests/spark/test_c.py::test_0"])
    assert summarize(SUITE, night).passed == 2
    assert pending(SUITE, night) == ["tests/spark/test_c.py::test_0"]


def test_a_part_of_affected_tests_alone_is_removed():
    assert kept(part(Outcome.FAILED, "fff"), affected=["tests/spark/test_a.py", "tests/spark/test_b.py"]).parts == []


def test_unit_tests_run_again():
    """They also check files of the repository."""
    test = "tests/unit/test_layout.py::test_all"
    one = replace(part(Outcome.PASSED, ""), planned=(test,), tests={test: CaseResult("passed", 1.0)})
    assert pending(SUITE, kept(one, affected=(), collected=[test])) == [test]


PROGRAMS = [lane for lane in LANES if isinstance(lane, RunLane)]


@pytest.mark.parametrize(
    ("affected", "lanes"),
    [
        ("tests/spark/test_a.py", "mutation fuzz soak"),
        ("tests/unit/test_a.py", "fuzz soak"),
        ("tests/mutation/score.py", "fuzz soak"),
        ("tests/soak/faults.py", "mutation fuzz"),
        ("tests/fuzz/__main__.py", "mutation soak"),
    ],
)
def test_a_program_runs_again_if_its_code_is_affected(affected, lanes):
    parts = [PartResult(lane.name, Outcome.PASSED, 9.0, "x", seed=5, passed=1) for lane in PROGRAMS]
    assert [one.lane for one in kept(*parts, affected=[affected], lanes=PROGRAMS).parts] == lanes.split()


@pytest.mark.parametrize(("affected", "count"), [("tests/support/cluster.py", 0), ("tests/support/x.py", 1)])
def test_a_lane_beside_an_affected_program_runs_again(affected, count):
    lane = replace(SUITE, beside="tests.support.cluster")
    assert len(kept(part(Outcome.PASSED, "pppppp"), affected=[affected], lanes=[lane]).parts) == count


def test_a_failure_is_repeated_with_the_seed_of_its_part():
    """The later commit's parts have other seeds."""
    night = kept(part(Outcome.FAILED, "fppppp"))
    (command,) = repeat_commands(SUITE, night.parts)
    assert command.startswith("env DMDELTA_TEST_SEED=5 ")
    assert night.seed != 5


GOOD, BAD = "def test_one(): pass\ndef test_two(): pass\n", "def test_one(): assert False\ndef test_two(): pass\n"
SMALL = (SuiteLane("suite", ("tests",), "not long", 1.0), LOAD)


@pytest.fixture
def fixed(repository):
    """A repository with a night in which a test failed, and a commit that changes its file."""
    (repository / "load.py").write_text(PROGRAM)
    for name, text in (("a", GOOD), ("b", BAD)):
        (repository / "tests" / "spark").mkdir(parents=True, exist_ok=True)
        (repository / "tests" / "spark" / f"test_{name}.py").write_text(text)
    git("add", ".")
    git("commit", "-qm", "tests")
    assert main([], SMALL) == 1
    git("add", "docs")
    (repository / "tests" / "spark" / "test_b.py").write_text(GOOD)
    git("commit", "-qam", "a test is fixed")
    return repository


@pytest.mark.parametrize("elsewhere", [False, True])
def test_only_the_changed_file_runs_again(fixed, capsys, elsewhere):
    """In this checkout, and in a fresh one from the committed page."""
    earlier = read_verification(FILE).commit
    if elsewhere:
        git("clean", "-qxdf")
    capsys.readouterr()
    assert main([], SMALL) == 0
    output = capsys.readouterr().out
    assert f"results of {earlier} are kept, except of tests/spark/test_b.py\n" in output
    assert "suite, part 2: 2 tests\n" in output
    assert lanes_of() == {"suite": ("passed", 4, 0, 0), "load": ("passed", 10, 0, 0)}
    found = read_verification(FILE)
    assert (found.commit, found.earlier) == (git("rev-parse", "HEAD"), (earlier,))
    assert f"Results of `{earlier}` count if the product" in Path(PAGE).read_text()


def test_a_change_of_the_product_starts_another_night(fixed):
    """So does one after it that changes tests only."""
    (fixed / "product.py").write_text("")
    git("add", ".")
    git("commit", "-qm", "product")
    (fixed / "tests" / "spark" / "test_b.py").write_text(BAD)
    git("commit", "-qam", "tests")
    assert main(["--lanes", "suite"], SMALL) == 1
    assert lanes_of() == {"suite": ("failed", 3, 1, 0), "load": ("not run", 0, 0, 2)}
    assert read_verification(FILE).earlier == ()


def test_an_unknown_commit_has_no_results(repository):
    head = git("rev-parse", "HEAD")
    assert affected_since("", head) is None
    assert affected_since("c" * 40, head) is None
    assert affected_since(head, head) == frozenset()
