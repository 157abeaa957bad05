"""`make nightly`: every lane on one commit, in parts; `BUDGET=150m` stops between parts, and the next call resumes.

The state of a commit's night is in var/nightly, with the output of each part. After each part docs/verification.md and
docs/verification.json are written; with the committed JSON a fresh checkout resumes the night of its commit.
SIGINT, SIGTERM and SIGHUP stop a part of tests and keep the results of those that ended.
Exit code: 0 all lanes passed, 1 a lane failed or nothing of it passed, 3 the budget ended before all lanes had run.
"""

import argparse
import fcntl
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.nightly.committed import known_seconds, read_stored, resumed_night
from tests.nightly.kept import kept_night, plan_affected
from tests.nightly.lanes import FOLDER, LANES, Lane, SuiteLane
from tests.nightly.page import JSON, PAGE, exit_code, repeat_commands, summarize, verification, write_verification
from tests.nightly.plan import Part, parse_budget, plan_next
from tests.nightly.running import Interrupted, collect, run_command, run_part, tail
from tests.nightly.state import PART_SECONDS, Night, Outcome, PartResult, read_night, seed_of, write_night

STATE = FOLDER / "state.json"
_RESULTS = tuple(f":(exclude,glob){each}" for each in (JSON, PAGE, "benchmarks/*.md"))
"""What tests and benchmarks have measured is committed after they ran: this does not count as a change of the code."""


def code_commit() -> str:
    """The newest commit that changes anything except pages with results.

    Raises:
        SystemExit: the working tree has uncommitted changes.
    """
    if changed := _changes("normal"):
        raise SystemExit(f"nightly: commit or remove the changes first, the page names a commit:\n{changed}")
    return _newest_commit()


def _newest_commit() -> str:
    return _git("log", "-1", "--format=%H", "--", ".", *_RESULTS)


def _changes(untracked: str) -> str:
    return _git("status", "--porcelain", f"--untracked-files={untracked}", "--", ".", *_RESULTS)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def run(night: Night, lanes: Sequence[Lane], budget: float, publish: Callable[[], None]) -> None:
    """Run parts until all are done or the next one does not fit; `publish` writes the night's results.

    Raises:
        SystemExit: the code has changed during a part, whose results do not count.
        KeyboardInterrupt: a signal has ended a part.
    """
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
        try:
            result = run_part(part)
        except Interrupted as signalled:
            _end(part, signalled.result, night, publish)
            raise
        _end(part, result, night, publish)


def _end(part: Part, result: PartResult, night: Night, publish: Callable[[], None]) -> None:
    """Report a part and save its results, even if the terminal is gone."""
    try:
        _report(part, result)
    finally:
        _keep(result, night, publish)


def _keep(result: PartResult, night: Night, publish: Callable[[], None]) -> None:
    """Save a part's results, unless its tests may have run on other code.

    A new file does not lose them: a crashed JVM writes one. The next call requires that it is removed.
    """
    changed, commit = _changes("no"), _newest_commit()
    if changed or commit != night.commit:
        what = changed or f"the commit is {commit}"
        raise SystemExit(f"nightly: the code changed during the part, whose results do not count:\n{what}")
    night.add(result)
    publish()


def _prepare(lane: Lane, night: Night, left: float) -> None:
    """Run a lane's preparation, if it has one; the night records the reason of a failure."""
    if not lane.prepare:
        return
    print(f"nightly: preparing {lane.name}", flush=True)
    log, limit = FOLDER / f"{lane.name}-prepare.log", min(left, PART_SECONDS)
    ended = run_command(lane.prepare, log, limit)
    if ended.outcome is Outcome.FAILED or (ended.outcome is Outcome.STOPPED and limit == PART_SECONDS):
        night.unprepared[lane.name] = f"`{shlex.join(lane.prepare)}` fails: {tail(log, 1)}"
        print(f"nightly: {lane.name}: {night.unprepared[lane.name]}", flush=True)


def _begin(part: Part) -> None:
    what = f"{len(part.tests)} tests" if part.tests else f"SEED={part.seed}"
    print(f"nightly: {part.lane.name}, part {part.number}: {what}", flush=True)


def _report(part: Part, result: PartResult) -> None:
    print(
        f"nightly: {part.lane.name}, part {part.number}: {result.outcome.value} after {result.seconds / 60:.0f} min",
        flush=True,
    )
    if result.outcome is Outcome.FAILED:
        print(tail(FOLDER / f"{part.lane.name}-{part.number}.log"))
    _print_repeats(repeat_commands(part.lane, [result]))


def _print_repeats(commands: Sequence[str]) -> None:
    for command in commands:
        print(f"repeat: {command}", flush=True)


def _sum_up(lanes: Sequence[Lane], night: Night) -> int:
    """Print the results of lanes and the commands that repeat their failures, and return the exit code."""
    summaries = [summarize(lane, night) for lane in lanes]
    print("nightly: " + ", ".join(f"{one.lane} {one.result}" for one in summaries), flush=True)
    _print_repeats([command for one in summaries for command in one.repeat])
    return exit_code(summaries)


def begun_night(commit: str, lanes: Sequence[Lane]) -> Night:
    """The state of a commit's night: this checkout's or the committed one, whichever has more parts.

    Of an earlier commit's night, the durations are known, and the results that a change of tests does not affect are
    kept. A failed preparation is retried in each call.
    """
    night, (committed, stored) = read_night(STATE), read_stored(JSON)
    seconds = known_seconds(stored) | night.seconds
    affected = affected_since(night.commit, commit)
    has_more = affected is None or len(stored.get("parts", ())) > len(night.parts)
    if has_more and (affected_too := affected_since(committed, commit)) is not None:
        print("nightly: resuming from the committed page", flush=True)
        night, affected = resumed_night(stored, committed, lanes, collect), affected_too
    if affected is None:
        return Night(commit, seed_of(commit), seconds=seconds)
    if night.commit != commit:
        print(f"nightly: results of {night.commit} are kept, except of {', '.join(sorted(affected))}", flush=True)
        night = kept_night(night, commit, affected, lanes, collect)
    night.seconds = seconds
    night.unprepared.clear()
    return night


def affected_since(earlier: str, commit: str) -> frozenset[str] | None:
    """The documents and files of tests that have changed since an earlier commit, and the files of tests that use them.

    None: everything may have changed, or the earlier commit is unknown.
    """
    if not earlier or subprocess.run(["git", "cat-file", "-e", earlier], capture_output=True, check=False).returncode:
        return None
    changed = _git("diff", "--name-only", earlier, commit, "--", ".", *_RESULTS).splitlines()
    if not changed:
        return frozenset()
    return plan_affected(changed, {str(path): path.read_text("utf-8") for path in Path("tests").rglob("*.py")})


@contextmanager
def _alone() -> Iterator[None]:
    """No other call writes the night meanwhile.

    Raises:
        SystemExit: one does.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("nightly: another call is running in this checkout: wait for its end") from None
        yield


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
    with _alone():
        night = begun_night(code_commit(), lanes)
        try:
            run(night, chosen, budget, lambda: _write(night, lanes))
            _write(night, lanes)
        finally:
            code = _sum_up(chosen, night)
    return code


if __name__ == "__main__":
    # A shell starts background commands with SIGINT ignored.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)
    sys.exit(main())
