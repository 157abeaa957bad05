"""`make mutation`: how a mutant ends, which survivors are accepted, and when the lane passes."""

import io
import tokenize
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.mutation import __main__ as lane
from tests.mutation import running
from tests.mutation.accepted import Accepted, Change, accepted_reason, change_of, read_accepted
from tests.mutation.mutants import Mutant
from tests.mutation.running import ROOT, Fate, fate_of, run_mutant
from tests.mutation.score import Score, Survivor

MODULE = "dmdelta/model/gtid.py"
TEXT = "while at < 2:\n    a()\n    while at < 2:\n        b()\n"


def a_mutant(line=1, operator="NumberReplacer"):
    return Mutant(MODULE, line, 0, operator, 0, inside=True)


@pytest.mark.parametrize(
    ("code", "fate"),
    [
        (0, Fate.SURVIVED),
        (1, Fate.KILLED),
        (2, Fate.KILLED),
        (3, Fate.UNTESTED),
        (4, Fate.UNCOLLECTED),
        (5, Fate.UNTESTED),
        (-11, Fate.KILLED),
        (None, Fate.TIMED_OUT),
    ],
)
def test_a_fate(code, fate):
    """A failed test and a crash kill; an internal error and an empty selection are not the mutant's."""
    assert fate_of(code) is fate


def run_coded(monkeypatch, folder, mutated, unmutated):
    """Run a mutant whose tests end with an exit code, and with another one if pytest collects them unmutated."""
    (folder / running.OUTPUT).write_text("what pytest printed")
    monkeypatch.setattr(running, "_mutated_code", lambda *_: mutated)
    monkeypatch.setattr(running, "_exit_code", lambda *arguments: {"--collect-only": unmutated}[arguments[-1]])
    return run_mutant(folder, a_mutant(), ["a.py::test_a"], 1.0)


@pytest.mark.parametrize(
    ("code", "fate"), [(0, Fate.SURVIVED), (1, Fate.KILLED), (4, Fate.KILLED), (None, Fate.TIMED_OUT)]
)
def test_a_mutant_that_prevents_an_import_is_killed(monkeypatch, tmp_path, code, fate):
    """Pytest then reports a wrong usage: without the mutant it collects the tests."""
    assert run_coded(monkeypatch, tmp_path, code, 0) is fate


@pytest.mark.parametrize(("code", "unmutated"), [(3, 0), (4, 4), (4, None), (5, 0)])
def test_a_failure_of_pytest_itself_is_an_error(monkeypatch, tmp_path, code, unmutated):
    with pytest.raises(RuntimeError, match=r"gtid\.py:1:0 NumberReplacer is not (.|\n)*what pytest printed"):
        run_coded(monkeypatch, tmp_path, code, unmutated)


def test_each_copy_has_a_share_of_the_mutants(monkeypatch, tmp_path):
    """The unmutated tests of a share pass first; a mutant without a test survives."""
    copies = [tmp_path / "a", tmp_path / "b"]
    log = tmp_path / "log"

    def run(copy, mutant, tests, seconds):
        log.open("a").write(f"{copy.name} {mutant.line} {tests} {seconds}\n")
        return [Fate.KILLED, Fate.SURVIVED, Fate.TIMED_OUT, Fate.KILLED][mutant.line]

    monkeypatch.setattr(lane, "check_unmutated", lambda copy, tests: log.open("a").write(f"{copy.name} {tests}\n"))
    monkeypatch.setattr(lane, "run_mutant", run)
    monkeypatch.setattr(lane, "survivor_of", lambda copy, mutant, tests: (copy, mutant.line, tests))
    planned = [(a_mutant(line), [f"t{line}"] if line else [], 1.0) for line in range(4)]
    score = lane.scored(copies, 9, planned)
    assert (score.positions, score.killed, score.timed_out) == (9, 2, 1)
    assert score.survivors == ((copies[0], 0, 0), (copies[0], 1, 1))
    lines = ["a ['t2']", "a 2 ['t2'] 1.0", "b ['t1', 't3']", "b 1 ['t1'] 1.0", "b 3 ['t3'] 1.0"]
    assert sorted(log.read_text().splitlines()) == sorted(lines)


def test_the_line_of_a_mutant():
    """The second of two equal lines."""
    changed = TEXT[:18] + TEXT[18:].replace("2", "3")
    assert change_of(a_mutant(3), TEXT, changed) == Change("while at < 2:", "while at < 3:", 2)
    assert change_of(a_mutant(1), TEXT, TEXT.replace("2", "1", 1)) == Change("while at < 2:", "while at < 1:", 1)


def test_an_accepted_survivor_has_a_reason():
    """It applies to its path, line and operator only."""
    accepted, change = [Accepted(MODULE, "x = 1", "Number", "it is a buffer's size")], Change("x = 1", "x = 2")
    assert accepted_reason(accepted, a_mutant(), change) == "it is a buffer's size"
    assert accepted_reason(accepted, a_mutant(), Change("x = 2", "x = 3")) is None
    assert accepted_reason(accepted, a_mutant(operator="AddNot"), change) is None


def test_a_reason_applies_to_some_changes_of_a_line():
    """To some of the mutated lines, and to one of equal lines."""
    some = [Accepted(MODULE, "x = 1, 2", "Number", "nothing reads the first", becomes=["x = 2, 2", "x = 0, 2"])]
    reasons = [accepted_reason(some, a_mutant(), Change("x = 1, 2", text)) for text in ("x = 0, 2", "x = 1, 3")]
    assert reasons == ["nothing reads the first", None]
    second = [Accepted(MODULE, "x = 1", "Number", "not read", occurrence=2)]
    found = [accepted_reason(second, a_mutant(), Change("x = 1", "x = 2", number)) for number in (1, 2, 3)]
    assert found == [None, "not read", None]


def numbers_of(code):
    """How many numbers a line has."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    kinds = Counter[int]()
    with suppress(tokenize.TokenError):  # the statement continues in the next line
        kinds.update(token.type for token in tokens)
    return kinds[tokenize.NUMBER]


@pytest.mark.parametrize("entry", read_accepted(), ids=lambda entry: f"{Path(entry.path).stem}: {entry.code[:40]}")
def test_each_accepted_survivor_is_a_line_of_its_module(entry):
    """An entry whose line is gone is deleted. One of several equal lines or numbers says which one it is about."""
    lines = Counter(line.strip() for line in (ROOT / entry.path).read_text("utf-8").splitlines())
    assert lines[entry.code]
    assert (entry.occurrence is not None) == (lines[entry.code] > 1)
    assert entry.occurrence is None or 1 <= entry.occurrence <= lines[entry.code]
    assert entry.code not in entry.becomes
    assert entry.becomes or entry.operator != "NumberReplacer" or numbers_of(entry.code) == 1
    assert entry.reason


def a_score(killed, accepted=0, unexplained=0, timed_out=0):
    change = Change("x = 1", "x = 2")
    reasons = ["it is a buffer's size"] * accepted + [None] * unexplained
    return Score(4321, killed, timed_out, tuple(Survivor(a_mutant(), change, 3, reason) for reason in reasons))


@pytest.mark.parametrize(
    ("score", "passes"),
    [
        (a_score(85, accepted=15), True),
        (a_score(85, unexplained=15), True),
        (a_score(84, accepted=16), False),
        (a_score(0, accepted=5), False),
        (a_score(0), False),
    ],
)
def test_the_lane_passes_if_the_tests_kill_enough(score, passes):
    """Of all mutants: reasons do not replace tests. A survivor without a reason does not fail the lane."""
    assert score.passes == passes


def test_both_shares_are_reported():
    """Each survivor without a reason counts as failed, and is listed first."""
    figures = a_score(170, accepted=10, unexplained=20, timed_out=4).figures()
    assert (figures["passed"], figures["failed"]) == (170, 20)
    summary, *survivors = figures["notes"]
    assert summary == (
        "170 of 200 mutants killed (85.0%), 4 of them by a timeout; 10 cannot be noticed, 89.5% of the others are "
        "killed; 20 survive without a reason; 4,321 positions in the pool"
    )
    changed = f"{MODULE}:1:0 NumberReplacer (3 tests): x = 1 -> x = 2"
    assert survivors == [f"failed: {changed}"] * 20 + [f"survivor {changed} - it is a buffer's size"] * 10


def test_a_sample_without_a_killed_mutant_has_shares():
    assert (a_score(0, accepted=5).share, a_score(0, accepted=5).detectable_share) == (0.0, 0.0)
