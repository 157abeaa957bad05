"""`make mutation`: where mutants are allowed, and which tests run on them."""

import pytest

from tests.mutation import selection
from tests.mutation.mutants import PURE_MODULES, Mutant, Regions, modules
from tests.mutation.running import ROOT
from tests.mutation.selection import Contexts, nearness, plan_tests

MODULE = "dmdelta/model/gtid.py"
TEXT = '''LIMIT: int | None = 1 + 2
def helper(a: int | str = 3 | 4) -> str | None:
    return a + 1
@dataclass(frozen=True)
class Table:
    def plan_change(self, b):
        """A docstring."""
        return b - 1
PAIRS = zip('µs', LIMIT, strict=False), 5
'''


def a_mutant(line=3, *, inside=True, operator="NumberReplacer"):
    return Mutant(MODULE, line, 0, operator, 0, inside)


@pytest.mark.parametrize(
    ("text", "ignored", "function", "planning"),
    [
        ("int | None", True, False, False),
        ("1 + 2", False, False, False),
        ("int | str", True, False, False),
        ("3 | 4", False, False, False),
        ("str | None", True, False, False),
        ("frozen=True", True, False, False),
        ("False)", True, False, False),
        ("), 5", False, False, False),
        ("a + 1", False, True, False),
        ("b - 1", False, True, True),
    ],
)
def test_regions(text, ignored, function, planning):
    """Annotations, decorators and `strict` of `zip` are not mutated, even behind text that is not ASCII.

    A default is executed on import.
    """
    lines = TEXT.splitlines()
    (line,) = (number for number, code in enumerate(lines, 1) if text in code)
    column = lines[line - 1].index(text)
    regions = Regions(TEXT)
    assert regions.is_ignored(line, column) == ignored
    assert (regions.is_function(line), regions.is_planning(line)) == (function, planning)


def test_the_pool_has_pure_modules_and_plans():
    """Complete packages and modules, and the planning functions of others."""
    found = dict(modules(ROOT))
    assert {"dmdelta/binlog/rows/decode.py", "dmdelta/engine/apply/turns.py"} <= found.keys()
    assert not found["dmdelta/binlog/rows/decode.py"]
    assert not found["dmdelta/engine/apply/turns.py"]
    assert found["dmdelta/silver/rows/strategy.py"]
    assert "dmdelta/lakehouse/commits.py" not in found
    assert all((ROOT / "dmdelta" / "engine" / f"{module}.py").exists() for module in PURE_MODULES)


@pytest.mark.parametrize(
    ("test", "near"),
    [
        ("tests/unit/model/test_gtid.py::test_a", 2),
        ("tests/unit/model/test_position.py::test_a", 1),
        ("tests/unit/test_gtid.py::test_a", 0),
        ("tests/unit/source/test_gtid.py::test_a", 0),
    ],
)
def test_nearness(test, near):
    assert nearness(MODULE, test) == near


NEAR, FAR, SLOW = "tests/unit/model/test_gtid.py::x", "tests/unit/cli/test_a.py::x", "tests/unit/cli/test_b.py::x"
LINES = {MODULE: {3: frozenset({SLOW, FAR, NEAR}), 4: frozenset({FAR})}}


def test_the_tests_that_execute_the_line_run_on_a_mutant():
    """The nearest first, then the fastest."""
    contexts = Contexts(LINES, {NEAR: 5.0, FAR: 1.0, SLOW: 2.0})
    assert plan_tests(a_mutant(), contexts) == [NEAR, FAR, SLOW]
    assert plan_tests(a_mutant(4), contexts) == [FAR]
    assert plan_tests(a_mutant(5), contexts) == []


def test_the_tests_of_the_module_run_on_a_line_that_an_import_executes():
    assert plan_tests(a_mutant(1, inside=False), Contexts(LINES, {SLOW: 1.0})) == [NEAR, FAR, SLOW]


def test_the_tests_of_the_folder_run_on_a_module_without_executed_functions():
    assert plan_tests(a_mutant(1, inside=False), Contexts({}, {NEAR: 1.0, FAR: 1.0})) == [NEAR]
    assert plan_tests(a_mutant(1), Contexts({}, {NEAR: 1.0, FAR: 1.0})) == []


@pytest.mark.parametrize(
    ("slow", "tests"),
    [(selection.MOST_SECONDS - 2.0, [NEAR, FAR, SLOW]), (selection.MOST_SECONDS - 1.9, [NEAR, FAR])],
)
def test_the_time_of_a_mutant_is_limited(slow, tests):
    contexts = Contexts(LINES, {NEAR: 1.0, FAR: 1.0, SLOW: slow})
    assert plan_tests(a_mutant(), contexts) == tests


def test_at_least_one_test_is_run():
    assert plan_tests(a_mutant(4), Contexts(LINES, {FAR: 9000.0})) == [FAR]
