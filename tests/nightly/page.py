"""docs/verification.md and docs/verification.json: what passed on which commit."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.nightly.committed import stored_night
from tests.nightly.lanes import Lane, SuiteLane
from tests.nightly.plan import is_complete, pending
from tests.nightly.state import Night, Outcome, PartResult, finished, replace_text

JSON = Path("docs/verification.json")
PAGE = Path("docs/verification.md")
UNFINISHED = 3
"""The exit code of a call whose budget ended before all lanes had run."""
HEADS = ("lane", "result", "passed", "failed", "skipped", "to run", "minutes", "faults injected", "rows", "seeds")

INTRODUCTION = (
    "`make nightly` generates this page and [verification.json](verification.json). "
    "[CONTRIBUTING.md](../CONTRIBUTING.md#which-tests-to-run) describes the lanes."
)

EARLIER = "Results of `{commit}` count if the product, the test and everything that the test uses are the same in both commits."


@dataclass(frozen=True, slots=True)
class LaneSummary:
    """One line of the page.

    Attributes:
        result: `passed`, `failed`, `incomplete` or `not run`. A lane with nothing left to run is `incomplete` if nothing
            has passed.
        failed: tests, or what a program reports; a program that reports failures may pass (`tests/mutation`).
        pending: tests, or parts of a program, that have not run.
        seconds: of all parts.
        repeat: for each failure, a command that reproduces it.
    """

    lane: str
    result: str
    passed: int
    failed: int
    skipped: int
    pending: int
    seconds: float
    faults: int
    rows: int
    seeds: tuple[int, ...] = ()
    repeat: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The page's content.

    Attributes:
        date: of the newest part, `YYYY-MM-DD`; empty if none has run.
        machines: what the parts ran on.
        earlier: the commits of results that count for this commit, too.
    """

    commit: str
    date: str
    machines: tuple[str, ...]
    lanes: tuple[LaneSummary, ...] = field(default=())
    earlier: tuple[str, ...] = ()


def summarize(lane: Lane, night: Night) -> LaneSummary:
    """The results of a lane."""
    parts = night.of(lane.name)
    seconds, faults = sum(part.seconds for part in parts), sum(part.faults for part in parts)
    rows, notes = sum(part.rows for part in parts), tuple(note for part in parts for note in part.notes)
    if isinstance(lane, SuiteLane):
        results = finished(parts)
        outcomes = [result.outcome for result in results.values()]
        passed, failed, skipped = (outcomes.count(kind) for kind in ("passed", "failed", "skipped"))
        left = len(pending(lane, night))
        notes += tuple(f"skipped: {test}" for test, result in results.items() if result.outcome == "skipped")
    else:
        passed, failed = sum(part.passed for part in parts), sum(part.failed for part in parts)
        skipped, left = 0, lane.parts - len(parts)
    repeat = repeat_commands(lane, parts)
    if lane.name in night.unprepared:
        repeat.append(shlex.join(lane.prepare))
        notes += (night.unprepared[lane.name],)
    result = _result(bool(repeat), begun=bool(parts), complete=is_complete(lane, night) and passed > 0)
    seeds = tuple(dict.fromkeys(part.seed for part in parts if part.seed is not None))
    return LaneSummary(
        lane.name, result, passed, failed, skipped, left, round(seconds, 1), faults, rows, seeds, tuple(repeat), notes
    )


def repeat_commands(lane: Lane, parts: Sequence[PartResult]) -> list[str]:
    """A command for each failed test, and the command of each part that failed without a failed test."""
    failed = [test for test, result in finished(parts).items() if result.outcome == "failed"]
    seeds = {test: part.seed or 0 for part in parts for test in (*part.planned, *part.tests, *part.interrupted)}
    tests = [shlex.join(lane.command(test, seeds[test])) for test in failed] if isinstance(lane, SuiteLane) else []
    broken = [part for part in parts if part.outcome is Outcome.FAILED and finished([part]).keys().isdisjoint(failed)]
    return [*tests, *(part.command for part in broken)]


def _result(failed: bool, *, begun: bool, complete: bool) -> str:  # noqa: FBT001 - a truth table
    if failed:
        return "failed"
    if not begun:
        return "not run"
    return "passed" if complete else "incomplete"


def exit_code(summaries: Sequence[LaneSummary]) -> int:
    """1 if a lane failed or has nothing left to run and has not passed, UNFINISHED if tests are left, otherwise 0."""
    waiting = [one for one in summaries if one.result != "passed"]
    if any(one.result == "failed" or not one.pending for one in waiting):
        return 1
    return UNFINISHED if waiting else 0


def verification(lanes: Sequence[Lane], night: Night) -> Verification:
    """The results of a night so far."""
    date = max((part.date for part in night.parts), default="")
    machines = tuple(dict.fromkeys(part.machine for part in night.parts))
    earlier = tuple(dict.fromkeys(part.commit for part in night.parts if part.commit != night.commit))
    return Verification(night.commit, date, machines, tuple(summarize(lane, night) for lane in lanes), earlier)


def read_verification(file: Path) -> Verification:
    """The content of a written page.

    Raises:
        TypeError, KeyError, ValueError: the file is not well-formed.
    """
    stored: dict[str, Any] = json.loads(file.read_text("utf-8"))
    stored.pop("night", None)
    lists = ("seeds", "repeat", "notes")
    lanes = tuple(LaneSummary(**{**lane, **{name: tuple(lane[name]) for name in lists}}) for lane in stored["lanes"])
    texts = {name: tuple(stored.get(name, ())) for name in ("machines", "earlier")}
    return Verification(**{**stored, **texts, "lanes": lanes})


def write_verification(found: Verification, night: Night) -> None:
    """Write the page, and the JSON file from which the night resumes."""
    replace_text(JSON, json.dumps({**asdict(found), "night": stored_night(night)}, indent=2) + "\n")
    replace_text(PAGE, rendered(found))


def rendered(found: Verification) -> str:
    """The page."""
    rows = [HEADS, tuple("---" if number < 2 else "---:" for number in range(len(HEADS))), *map(_cells, found.lanes)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    failures = [f"- {lane.lane}: `{command}`" for lane in found.lanes for command in lane.repeat]
    notes = [f"- {lane.lane}: {note}" for lane in found.lanes for note in lane.notes]
    parts = [
        "# Verification",
        INTRODUCTION,
        f"Commit `{found.commit}`{', ' if found.date else ''}{found.date}.",
        *(EARLIER.format(commit=commit) for commit in found.earlier),
        *(f"Machine: {machine}." for machine in found.machines),
        table,
        *_section("Failures: commands that repeat them", failures),
        *_section("Notes", notes),
    ]
    return "\n\n".join(parts) + "\n"


def _cells(lane: LaneSummary) -> tuple[str, ...]:
    counts = (lane.passed, lane.failed, lane.skipped, lane.pending)
    seeds = ", ".join(map(str, lane.seeds))
    return (
        lane.lane,
        lane.result,
        *(f"{count:,}" for count in counts),
        f"{lane.seconds / 60:.0f}",
        *(f"{count:,}" if count else "" for count in (lane.faults, lane.rows)),
        seeds,
    )


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(lines)] if lines else []
