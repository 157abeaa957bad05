"""The unit tests that run on a mutant: those that execute its line, the tests of its own module first."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation.mutants import Mutant

MOST_SECONDS = 20.0
"""Maximum number of tests for one mutant: further tests are more distant and add nothing."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """The lines that the unmutated tests executed.

    Attributes:
        lines: the test functions that execute each line of each module, by path below the root.
        seconds: how long each test function takes, with its fixtures.
    """

    lines: Mapping[str, Mapping[int, frozenset[str]]]
    seconds: Mapping[str, float] = field(default_factory=dict)


def read_contexts(folder: Path, root: Path) -> Contexts:
    """Read what `contexts.py` has written into a folder, in each process of pytest-xdist."""
    import coverage

    lines: dict[str, dict[int, frozenset[str]]] = defaultdict(dict)
    seconds = Counter[str]()
    for file in sorted(folder.glob("gw*.coverage")):
        data = coverage.CoverageData(str(file))
        data.read()
        for path in data.measured_files():
            module = lines[Path(path).relative_to(root).as_posix()]
            for line, names in data.contexts_by_lineno(path).items():
                module[line] = module.get(line, frozenset()) | frozenset(names) - {""}
        seconds.update(json.loads(file.with_suffix(".seconds").read_text()))
    return Contexts(lines, seconds)


def plan_tests(mutant: Mutant, contexts: Contexts) -> list[str]:
    """The test functions for a mutant, the nearest and fastest first; empty: no unit test executes its line.

    For a line that is executed on import: the tests of all lines of its module; if these are all executed on import,
    the tests of its folder.
    """
    lines = contexts.lines.get(mutant.path, {})
    found = lines.get(mutant.line, frozenset()) if mutant.inside else _union(lines.values())
    if not found and not mutant.inside:
        folder = len(Path(mutant.path).parts) - 2
        found = frozenset(test for test in contexts.seconds if nearness(mutant.path, test) >= folder)
    chosen, left = list[str](), MOST_SECONDS
    for test in sorted(found, key=lambda test: (-nearness(mutant.path, test), contexts.seconds.get(test, 0.0), test)):
        seconds = contexts.seconds.get(test, 0.0)
        if not chosen or seconds <= left:
            chosen.append(test)
            left -= seconds
    return chosen


def nearness(path: str, test: str) -> int:
    """How many components of a test's path match the module's path."""
    module = Path(path).with_suffix("").parts[1:]
    file = Path(test.partition("::")[0]).with_suffix("").parts[2:]
    named = (*file[:-1], file[-1].removeprefix("test_"))
    count = 0
    for left, right in zip(module, named, strict=False):
        if left != right:
            break
        count += 1
    return count


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)
