"""`make nightly`: every lane on one commit, in parts; `BUDGET=150m` stops between two, and the next call resumes.

The state of a commit's night is in var/nightly, with the output of each part. After each part docs/verification.md and
docs/verification.json are written. Exit code: 0 all lanes passed, 1 one failed, 3 the budget ends before the lanes do.
"""

import argparse
import shlex
import subprocess
import sys
import time
from datetime import datetime, timezone

from tests.nightly.lanes import FOLDER, LANES, Lane, SuiteLane
from tests.nightly.page import JSON, PAGE, summarize, verification, write_verification
from tests.nightly.plan import Part, is_complete, parse_budget, plan_next
from tests.nightly.running import collect, run_command, run_part, tail
from tests.nightly.state import Night, Outcome, PartResult, read_night, write_night

STATE = FOLDER / "state.json"
PREPARE_SECONDS = 3600.0
UNFINISHED = 3
_OWN = (f":(exclude){JSON}", f":(exclude){PAGE}")
"""The pages are committed after their night: that makes no other commit of the code."""


def tested_commit() -> str:
    """The newest commit that changes anything but the pages.

    Raises:
        SystemExit: the working tree has changes that are not committed.
    """
    if changed := _git("status", "--porcelain", "--", ".", *_OWN):
        raise SystemExit(f"nightly: commit or remove the changes first, the page names a commit:\n{changed}")
    return _git("log", "-1", "--format=%H", "--", ".", *_OWN)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def run(night: Night, lanes: tuple[Lane, ...], budget: float) -> None:
    """Run parts until all is done or the next one does not fit."""
    end, prepared = time.monotonic() + budget, set[str]()
    for lane in lanes:
        if isinstance(lane, SuiteLane) and lane.name not in night.collected:
            print(f"nightly: collecting {lane.name}", flush=True)
            night.collected[lane.name] = collect(lane)
    while (part := plan_next(lanes, night, end - time.monotonic())) is not None:
        if part.lane.name not in prepared and not _prepare(part.lane, night):
            continue
        prepared.add(part.lane.name)
        _begin(part)
        result = run_part(part)
        night.add(result)
        _write(night)
        _end(part, result)


def _prepare(lane: Lane, night: Night) -> bool:
    """Run a lane's preparation; why it failed stays in the night."""
    if not lane.prepare:
        return True
    log = FOLDER / f"{lane.name}-prepare.log"
    ended = run_command(lane.prepare, log, PREPARE_SECONDS)
    if ended.outcome is not Outcome.PASSED:
        night.unprepared[lane.name] = f"`{shlex.join(lane.prepare)}` fails: {tail(log, 1)}"
        print(f"nightly: {lane.name}: {night.unprepared[lane.name]}", flush=True)
        _write(night)
    return ended.outcome is Outcome.PASSED


def _begin(part: Part) -> None:
    what = f"{len(part.tests)} tests" if part.tests else f"SEED={part.seed}"
    print(f"nightly: {part.lane.name}, part {part.number}: {what}", flush=True)


def _end(part: Part, result: PartResult) -> None:
    failed = [test for test, one in result.tests.items() if one.outcome == "failed"]
    print(
        f"nightly: {part.lane.name}, part {part.number}: {result.outcome.value} after {result.seconds / 60:.0f} min",
        flush=True,
    )
    if result.outcome is Outcome.FAILED:
        print(tail(FOLDER / f"{part.lane.name}-{part.number}.log"))
        repeats = [shlex.join(part.lane.command(test)) for test in failed] if isinstance(part.lane, SuiteLane) else []
        for command in repeats or [result.command]:
            print(f"repeat: {command}", flush=True)


def _write(night: Night) -> None:
    write_night(STATE, night)
    write_verification(verification(LANES, night, f"{datetime.now(timezone.utc):%Y-%m-%d}"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly")
    parser.add_argument("--budget", type=parse_budget, default="", help="150m, 2h or 2h30m; without it until the end")
    parser.add_argument("--lanes", default="", help="only these, separated by commas")
    chosen = parser.parse_args()
    lanes = tuple(lane for lane in LANES if not chosen.lanes or lane.name in chosen.lanes.split(","))
    night = read_night(STATE, tested_commit())
    run(night, lanes, chosen.budget)
    _write(night)
    summaries = [summarize(lane, night) for lane in lanes]
    print("nightly: " + ", ".join(f"{one.lane} {one.result}" for one in summaries), flush=True)
    if any(one.result == "failed" for one in summaries):
        return 1
    return 0 if all(is_complete(lane, night) for lane in lanes) else UNFINISHED


if __name__ == "__main__":
    sys.exit(main())
