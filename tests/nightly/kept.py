"""Which results of an earlier commit count for a later one: those of tests whose code is the same in both.

Between the two commits only documents and the Python and YAML files of `tests` may differ. A file uses the modules that
it names, in an import or in a text such as `-m tests.support.cluster`, the documents and YAML files that it names, and
the conftest.py of its folders. The unit tests also check the repository's own files: they run again after each change.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tests.nightly.committed import file_of
from tests.nightly.lanes import Lane, RunLane, SuiteLane
from tests.nightly.state import Night, Outcome, PartResult, seed_of

_LANES = "tests/nightly/lanes.py"
"""A change of it may change any lane."""
_REPOSITORY = "tests/unit/"
_TEST_FILE = re.compile(r"tests/.*\.(?:py|yml)")
_NAME = re.compile(r"\btests(?:\.\w+)+")


def plan_affected(changed: Collection[str], sources: Mapping[str, str]) -> frozenset[str] | None:
    """The changed files, and the Python files of `tests` that use them; None: the change affects everything.

    Args:
        changed: the paths that differ between two commits.
        sources: the later commit's Python files of `tests`, text by path.
    """
    allowed = {path for path in changed if path.endswith(".md") or _TEST_FILE.fullmatch(path)}
    if _LANES in changed or len(allowed) < len(changed):
        return None
    names = [PurePosixPath(path).name for path in changed if not path.endswith(".py")]
    readers = {path for path, text in sources.items() if any(name in text for name in names)}
    uses = {path: frozenset(used_files(path, text)) for path, text in sources.items()}
    affected = frozenset(changed) | readers
    while more := {path for path, used in uses.items() if path not in affected and used & affected}:
        affected |= more
    return affected


def used_files(path: str, text: str) -> Iterator[str]:
    """The files that a Python file of `tests` may use; some of them do not exist."""
    yield from (f"{folder}/conftest.py" for folder in PurePosixPath(path).parents)
    for name in _named_modules(text):
        yield f"{name.replace('.', '/')}/__main__.py"
        parts = name.split(".")
        for length in range(2, len(parts) + 1):
            module = "/".join(parts[:length])
            yield from (f"{module}.py", f"{module}/__init__.py")


def _named_modules(text: str) -> Iterator[str]:
    yield from _NAME.findall(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "tests":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def kept_night(
    night: Night,
    commit: str,
    affected: frozenset[str],
    lanes: Sequence[Lane],
    collect: Callable[[SuiteLane], list[str]],
) -> Night:
    """The night of a later commit, with the results that count for it.

    Args:
        affected: the files whose tests have to run again.
        collect: the tests of a lane in the later commit.
    """
    kept = Night(commit, seed_of(commit), seconds=night.seconds)
    for lane in lanes:
        parts = night.of(lane.name)
        if not parts or any(map(_runs(lane), affected)):
            continue
        if isinstance(lane, SuiteLane):
            kept.collected[lane.name] = collect(lane)
            same = {test for test in kept.collected[lane.name] if not _is_affected(test, affected)}
            parts = [limited for part in parts if (limited := limited_part(part, same)).tests or limited.planned]
        kept.parts += parts
    return kept


def _runs(lane: Lane) -> Callable[[str], bool]:
    """Whether a lane as a whole depends on a file."""
    modules = [lane.beside] if isinstance(lane, SuiteLane) else [word for word in lane.arguments if _NAME.match(word)]
    starts = [f"{module.replace('.', '/')}{end}" for module in modules if module for end in (".py", "/")]
    folders = lane.tested if isinstance(lane, RunLane) else ()
    return lambda path: path.startswith((*starts, *folders))


def _is_affected(test: str, affected: frozenset[str]) -> bool:
    return file_of(test) in affected or test.startswith(_REPOSITORY)


def limited_part(part: PartResult, same: Collection[str]) -> PartResult:
    """A part without the tests that have to run again.

    If it failed, and only by these, it counts as stopped: its tests without a result have to run again, too.
    """
    culprits = {test for test, result in part.tests.items() if result.outcome == "failed"} | {*part.interrupted}
    is_cleared = part.outcome is Outcome.FAILED and culprits and culprits.isdisjoint(same)
    removed = sum(result.faults for test, result in part.tests.items() if test not in same)
    return replace(
        part,
        outcome=Outcome.STOPPED if is_cleared else part.outcome,
        planned=tuple(test for test in part.planned if test in same),
        tests={test: result for test, result in part.tests.items() if test in same},
        interrupted=tuple(test for test in part.interrupted if test in same),
        faults=part.faults - removed,
    )
