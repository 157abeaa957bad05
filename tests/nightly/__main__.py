"""`make nightly`: every lane on one commit, in parts; `BUDGET=150m` stops between parts, and the next call resumes.

The state of a commit's night is in var/nightly, with the output of each part. After each part docs/verification.md and
docs/verification.json are written; with the committed JSON a fresh checkout resumes the night of its commit.
Exit code: 0 all lanes passed, 1 a lane failed, 3 the budget ended before all lanes had run.
"""

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from tests.nightly.committed import known_seconds, read_stored, resumed_night
from tests.nightly.lanes import FOLDER, LANES, Lane, SuiteLane
from tests.nightly.page import JSON, PAGE, summarize, verification, write_verification
from tests.nightly.plan import Part, is_complete, parse_budget, plan_next
from tests.nightly.running import collect, run_command, run_part, tail
from tests.nightly.state import Night, Outcome, PartResult, read_night, write_night

STATE = FOLDER / "state.json"
PREPARE_SECONDS = 3600.0
UNFINISHED = 3
_RESULTS = tuple(f":(exclude,glob){each}" for each in (JSON, PAGE, "benchmarks/*.md"))
"""What tests and benchmarks have measured is committed after they ran: this does not count as a change of the code."""


def code_commit() -> str:
    """The newest commit that changes anything except pages with results.

    Raises:
        SystemExit: the working tree has uncommitted changes.
    """
    if changed := _git("status", "--porcelain", "--", ".", *_RESULTS):
        raise SystemExit(f"nightly: commit or remove the changes first, the page names a commit:\n{changed}")
    return _git("log", "-1", "--format=%H", "--", ".", *_RESULTS)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def run(night: Night, lanes: Sequence[Lane], budget: float, publish: Callable[[], None]) -> None:
    """Run parts until all are done or the next one does not fit; `publish` writes the night's results."""
    end, prepared = time.monotonic() + budget, set[str]()
    for lane in lanes:
        if isinstance(lane, SuiteLane) and lane.name not in night.collected:
            print(f"nightly: collecting {lane.name}", flush=True)
            night.collected[lane.name] = collect(lane)
    while (part := plan_next(lanes, night, end - time.monotonic())) is not None:
        if part.lane.name not in prepared:
            prepared.add(part.lane.name)
            _prepare(part.lane, night, end - time.monotonic())
            publish()
            continue  # the preparation took some of the time
        _begin(part)
        result = run_part(part)
        night.add(result)
        publish()
        _end(part, result)


def _prepare(lane: Lane, night: Night, left: float) -> None:
    """Run a lane's preparation, if it has one; the night records the reason of a failure."""
    if not lane.prepare:
        return
    print(f"nightly: preparing {lane.name}", flush=True)
    log, limit = FOLDER / f"{lane.name}-prepare.log", min(left, PREPARE_SECONDS)
    ended = run_command(lane.prepare, log, limit)
    if ended.outcome is Outcome.FAILED or (ended.outcome is Outcome.STOPPED and limit == PREPARE_SECONDS):
        night.unprepared[lane.name] = f"`{shlex.join(lane.prepare)}` fails: {tail(log, 1)}"
        print(f"nightly: {lane.name}: {night.unprepared[lane.name]}", flush=True)


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


def begun_night(commit: str, lanes: Sequence[Lane]) -> Night:
    """The state of a commit's night: this checkout's, else the committed one; of another commit only the durations."""
    night = read_night(STATE, commit)
    committed, stored = read_stored(JSON)
    if committed == commit and stored["parts"] and not night.parts:
        print("nightly: resuming from the committed page", flush=True)
        resumed = resumed_night(stored, commit, lanes, collect)
        resumed.seconds |= night.seconds
        return resumed
    night.seconds = known_seconds(stored) | night.seconds
    return night


def _write(night: Night, lanes: Sequence[Lane]) -> None:
    write_night(STATE, night)
    write_verification(verification(lanes, night), night)


def chosen_lanes(names: str, lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes with these names, separated by commas; without names all.

    Raises:
        ValueError: no lane has this name.
    """
    wanted = {name for name in names.split(",") if name}
    if unknown := wanted - {lane.name for lane in lanes}:
        raise ValueError(f"no lane {', '.join(sorted(unknown))}; lanes: {', '.join(lane.name for lane in lanes)}")
    return [lane for lane in lanes if not wanted or lane.name in wanted]


def main(arguments: Sequence[str] | None = None, lanes: Sequence[Lane] = LANES) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly")
    parser.add_argument("--budget", default="", help="150m, 2h or 2h30m; without it until the end")
    parser.add_argument("--lanes", default="", help="only these, separated by commas")
    given = parser.parse_args(arguments)
    try:
        budget, chosen = parse_budget(given.budget), chosen_lanes(given.lanes, lanes)
    except ValueError as error:
        parser.error(str(error))
    night = begun_night(code_commit(), lanes)
    run(night, chosen, budget, lambda: _write(night, lanes))
    _write(night, lanes)
    summaries = [summarize(lane, night) for lane in chosen]
    print("nightly: " + ", ".join(f"{one.lane} {one.result}" for one in summaries), flush=True)
    if any(one.result == "failed" for one in summaries):
        return 1
    return 0 if all(is_complete(lane, night) for lane in chosen) else UNFINISHED


if __name__ == "__main__":
    sys.exit(main())
