"""What docs/verification.json stores of a night, to resume it in a fresh checkout and to plan a new commit's parts."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.nightly.lanes import Lane, SuiteLane
from tests.nightly.state import CaseResult, Night, Outcome, PartResult, attempted, finished, seed_of

SINGLE_SECONDS = 10.0
"""Tests that take at least this long are listed with their durations; for the others, each file has the mean."""
_NAMED = ("failed", "skipped")


def stored_night(night: Night) -> dict[str, Any]:
    """A night as JSON values; tests that passed are ranges of pytest's order, which a checkout can collect again."""
    return {
        "collected": {lane: _digest(tests) for lane, tests in night.collected.items()},
        "seconds": _stored_seconds(night),
        "parts": [_stored_part(part, night.collected.get(part.lane, [])) for part in night.parts],
    }


def resumed_night(
    stored: Mapping[str, Any], commit: str, lanes: Sequence[Lane], collect: Callable[[SuiteLane], list[str]]
) -> Night:
    """The night of a commit, as another checkout of the same commit resumes it.

    A lane that collects other tests here restarts. A failed preparation is retried: this may be another machine.
    """
    night = Night(commit, seed_of(commit), seconds=known_seconds(stored))
    begun = {part["lane"] for part in stored["parts"]}
    for lane in lanes:
        if isinstance(lane, SuiteLane) and lane.name in begun:
            night.collected[lane.name] = collect(lane)
            if _digest(night.collected[lane.name]) != stored["collected"][lane.name]:
                print(f"nightly: {lane.name}: other tests than on the machine before: the lane begins again")
                begun.remove(lane.name)
    night.parts = [
        _part(part, night.collected.get(part["lane"], [])) for part in stored["parts"] if part["lane"] in begun
    ]
    return night


def read_stored(file: Path) -> tuple[str, Mapping[str, Any]]:
    """The commit and the night of a written page; '' if there is none."""
    if not file.exists():
        return "", {}
    found = json.loads(file.read_text("utf-8"))
    return (found["commit"], found["night"]) if "night" in found else ("", {})


def known_seconds(stored: Mapping[str, Any]) -> dict[str, float]:
    """Durations by lane and test, or by lane and file, as `Night.seconds` has them."""
    return {f"{lane} {name}": one for lane, names in stored.get("seconds", {}).items() for name, one in names.items()}


def _stored_seconds(night: Night) -> dict[str, dict[str, float]]:
    by_file: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    present = {lane: {*tests, *map(file_of, tests)} for lane, tests in night.collected.items()}
    for key, seconds in night.seconds.items():
        lane, _, name = key.partition(" ")
        if name in present.get(lane, (name,)):
            by_file[lane, file_of(name)][name] = seconds
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (lane, file), known in by_file.items():
        found[lane] |= _stored_file(file, known)
    return found


def _stored_file(file: str, known: Mapping[str, float]) -> dict[str, float]:
    """The mean of a file's short tests, and its long tests; without durations of tests, the file's known mean."""
    short = [seconds for test, seconds in known.items() if test != file and seconds < SINGLE_SECONDS]
    mean = sum(short) / len(short) if short else known.get(file)
    singles = {test: round(one, 1) for test, one in known.items() if test != file and one >= SINGLE_SECONDS}
    return singles if mean is None else {file: round(mean, 2), **singles}


def file_of(test: str) -> str:
    """The file of a test."""
    return test.partition("::")[0]


def _stored_part(part: PartResult, order: Sequence[str]) -> dict[str, Any]:
    ended = {test: result.outcome for test, result in finished([part]).items()}
    passed = [number for number, test in enumerate(order) if ended.get(test) == "passed"]
    named = {kind: [test for test, outcome in ended.items() if outcome == kind] for kind in _NAMED}
    faults = {test: result.faults for test, result in part.tests.items() if result.faults}
    figures = {name: value for name, value in asdict(part).items() if name not in {"planned", "tests"}}
    tests = {"passed": _ranges(passed), **named, "faults": faults}
    # The planned tests are not stored, but those that count as an attempt are.
    return {**figures, "outcome": part.outcome.value, "interrupted": attempted(part), "tests": tests}


def _part(stored: Mapping[str, Any], order: Sequence[str]) -> PartResult:
    """The durations of its tests are in `Night.seconds`."""
    passed = [order[number] for first, last in stored["tests"]["passed"] for number in range(first, last + 1)]
    outcomes = {test: kind for kind in _NAMED for test in stored["tests"][kind]} | dict.fromkeys(passed, "passed")
    faults = stored["tests"].get("faults", {})
    tests = {test: CaseResult(outcome, 0.0, faults.get(test, 0)) for test, outcome in outcomes.items()}
    lists = {name: tuple(stored[name]) for name in ("interrupted", "notes")}
    return PartResult(**{**stored, "outcome": Outcome(stored["outcome"]), "tests": tests, **lists})


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    """First and last of each run of consecutive numbers."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _digest(tests: Sequence[str]) -> str:
    return f"{len(tests)} tests, {sha256(chr(10).join(tests).encode()).hexdigest()[:16]}"
