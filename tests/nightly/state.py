"""The state of a night: its parts, stored on disk between calls."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

PART_SECONDS = 2400.0
"""The time limit of a part; at the end of a budget it is shorter."""
MOST_ATTEMPTS = 2
"""A test that does not end in this many parts with the full limit has failed."""


class Outcome(str, Enum):
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"
    """Stopped at the part's time limit: the next part runs the remaining tests."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How a test ended.

    Attributes:
        outcome: `passed`, `failed` or `skipped`.
        faults: how many faults it injected.
    """

    outcome: str
    seconds: float
    faults: int = 0


@dataclass(frozen=True, slots=True)
class PartResult:
    """How a part ended.

    Attributes:
        command: the shell command that repeats it.
        planned: the tests of the part; empty for a program.
        tests: the tests that ended.
        interrupted: the tests that were running when the part ended.
        passed, failed, faults, rows: the figures of a program.
        notes: lines for the page.
        date: of its end, `YYYY-MM-DD`.
        machine: what it ran on.
        commit: the one that it ran on.
    """

    lane: str
    outcome: Outcome
    seconds: float
    command: str
    seed: int | None = None
    planned: tuple[str, ...] = ()
    tests: Mapping[str, CaseResult] = field(default_factory=dict)
    interrupted: tuple[str, ...] = ()
    passed: int = 0
    failed: int = 0
    faults: int = 0
    rows: int = 0
    notes: tuple[str, ...] = ()
    date: str = ""
    machine: str = ""
    commit: str = ""


@dataclass(slots=True)
class Night:
    """The parts of one commit.

    Attributes:
        collected: the tests of each started lane, in pytest's order.
        seconds: the newest known duration of each test, of other commits, too, by lane and test; the committed file has
            the mean of the file for most tests.
        unprepared: why a lane's preparation failed, by lane.
    """

    commit: str
    seed: int
    parts: list[PartResult] = field(default_factory=list)
    collected: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    unprepared: dict[str, str] = field(default_factory=dict)

    def of(self, lane: str) -> list[PartResult]:
        """The parts of a lane."""
        return [part for part in self.parts if part.lane == lane]

    def add(self, part: PartResult) -> None:
        """Add a part, and the durations of its tests; an interrupted test takes at least as long as the part took."""
        self.parts.append(replace(part, commit=self.commit))
        for key in (f"{part.lane} {test}" for test in part.interrupted):
            self.seconds[key] = max(self.seconds.get(key, 0.0), part.seconds)
        self.seconds |= {f"{part.lane} {test}": result.seconds for test, result in part.tests.items()}


def attempted(part: PartResult) -> tuple[str, ...]:
    """The tests that a part at its full limit has tried in vain.

    These are the tests that it interrupted. If none of its tests started, these are all of them: pytest hangs before
    the first one.
    """
    has_started = part.interrupted or part.tests
    is_stuck = part.outcome is Outcome.STOPPED and part.seconds >= PART_SECONDS and not has_started
    return part.planned if is_stuck else part.interrupted


def has_hung(part: PartResult) -> bool:
    """Whether all tests of a part ended, but pytest did not: the limit has stopped it."""
    return part.outcome is Outcome.STOPPED and set(part.planned) <= part.tests.keys()


def finished(parts: Sequence[PartResult]) -> dict[str, CaseResult]:
    """The tests of a lane that are done.

    A planned test without a result has failed if its part ended before the limit: pytest itself failed.
    """
    attempts = Counter(test for part in parts if part.seconds >= PART_SECONDS for test in attempted(part))
    done = {test: CaseResult("failed", 0.0) for test, count in attempts.items() if count >= MOST_ATTEMPTS}
    for part in parts:
        if part.outcome is not Outcome.STOPPED:
            done |= {test: CaseResult("failed", 0.0) for test in part.planned}
        done |= part.tests
    return done


def seed_of(commit: str) -> int:
    """The first seed of a commit's night: the same in each call."""
    return int(commit[:8], 16) % 1_000_000


def read_night(file: Path) -> Night:
    """The stored night; one of no commit if there is none."""
    if not file.exists():
        return Night("", 0)
    stored: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return Night(**{**stored, "parts": [_part(part) for part in stored["parts"]]})


def write_night(file: Path, night: Night) -> None:
    """Store a night."""
    replace_text(file, json.dumps(asdict(night)))


def replace_text(file: Path, text: str) -> None:
    """Replace the file atomically: a kill leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.new")  # .gitignore has it
    fresh.write_text(text, "utf-8")
    fresh.replace(file)


def _part(stored: dict[str, Any]) -> PartResult:
    tests = {test: CaseResult(**result) for test, result in stored["tests"].items()}
    lists = {name: tuple(stored[name]) for name in ("planned", "interrupted", "notes")}
    return PartResult(**{**stored, "outcome": Outcome(stored["outcome"]), "tests": tests, **lists})
