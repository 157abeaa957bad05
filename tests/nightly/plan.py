"""Pure planning: which part a night runs next within its budget."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.nightly.committed import file_of
from tests.nightly.lanes import Lane, RunLane, SuiteLane
from tests.nightly.state import PART_SECONDS, Night, finished

FILLED = 0.75
"""The share of a part's time that estimates may fill: durations vary from day to day."""
OVERHEAD_SECONDS = 60.0
"""Fixed time of a part of tests: collection, Spark, servers."""
_BUDGET = re.compile(r"(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?")


@dataclass(frozen=True, slots=True)
class Part:
    """The next part to run.

    Attributes:
        number: of the part in its lane, from 1.
        limit: seconds after which it is stopped.
        seed: of its random choices.
        tests: of a lane of tests.
    """

    lane: Lane
    number: int
    limit: float
    seed: int
    tests: tuple[str, ...] = ()


def parse_budget(text: str) -> float:
    """Seconds of `150m`, `2h` or `2h30m`; infinite for an empty text.

    Raises:
        ValueError: it is none of these.
    """
    if not text:
        return float("inf")
    found = _BUDGET.fullmatch(text)
    if found is None:
        raise ValueError(f"BUDGET={text}: write minutes and hours as in 150m, 2h or 2h30m")
    hours, minutes = (int(found[name] or 0) for name in ("hours", "minutes"))
    return 60.0 * (60 * hours + minutes)


def plan_next(lanes: Sequence[Lane], night: Night, left: float) -> Part | None:
    """The first part that fits into `left` seconds; None: all parts are done, or none fits.

    A lane of tests must be collected; a lane whose preparation failed is skipped.
    """
    limit = min(left, PART_SECONDS)
    for lane in lanes:
        if lane.name in night.unprepared:
            continue
        part = _next_run(lane, night, limit) if isinstance(lane, RunLane) else _next_tests(lane, night, limit)
        if part is not None:
            return part
    return None


def is_complete(lane: Lane, night: Night) -> bool:
    """Whether all of the lane has run."""
    if lane.name in night.unprepared:
        return True
    if isinstance(lane, RunLane):
        return len(night.of(lane.name)) >= lane.parts
    return lane.name in night.collected and not pending(lane, night)


def pending(lane: SuiteLane, night: Night) -> list[str]:
    """The tests of a lane that no part has finished, in pytest's order."""
    done = finished(night.of(lane.name))
    return [test for test in night.collected.get(lane.name, ()) if test not in done]


def _next_run(lane: RunLane, night: Night, limit: float) -> Part | None:
    done = len(night.of(lane.name))
    if done >= lane.parts or lane.seconds > limit:
        return None
    return Part(lane, done + 1, lane.seconds, night.seed + done)


def _next_tests(lane: SuiteLane, night: Night, limit: float) -> Part | None:
    estimates = {test: estimate(lane, night, test) for test in pending(lane, night)}
    tests = fitting(estimates, (FILLED * limit - OVERHEAD_SECONDS) * lane.processes, longest=limit == PART_SECONDS)
    return Part(lane, len(night.of(lane.name)) + 1, limit, night.seed, tests) if tests else None


def estimate(lane: SuiteLane, night: Night, test: str) -> float:
    """Seconds that a test takes: its own newest duration, its file's mean, or the lane's estimate."""
    known = (night.seconds.get(f"{lane.name} {name}") for name in (test, file_of(test)))
    return next((seconds for seconds in known if seconds is not None), lane.test_seconds)


def fitting(estimates: Mapping[str, float], seconds: float, *, longest: bool) -> tuple[str, ...]:
    """The first tests that take at most `seconds`; `longest`: at least one, because no later part has more time."""
    chosen, total = list[str](), 0.0
    for test, estimate in estimates.items():
        if total + estimate > seconds and (chosen or not longest):
            break
        chosen.append(test)
        total += estimate
    return tuple(chosen)
