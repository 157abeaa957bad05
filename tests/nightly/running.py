"""Runs a part in its own process group, until it ends or is stopped at its time limit."""

import ctypes
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.nightly.lanes import FOLDER, PYTHON, RunLane, SuiteLane
from tests.nightly.plan import Part
from tests.nightly.reports import VARIABLE
from tests.nightly.state import CaseResult, Outcome, PartResult, has_hung

STOP_SECONDS = 120.0
"""Maximum seconds that a part takes to end after SIGINT: fixtures stop their servers and JVMs."""
_ENDED = {0: Outcome.PASSED, None: Outcome.STOPPED}
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Interrupted(KeyboardInterrupt):
    """A signal has ended a part of tests; `result` has the tests that ended before."""

    def __init__(self, result: PartResult) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: the exit code; None: it was stopped at its limit.
    """

    code: int | None
    seconds: float
    log: Path

    @property
    def outcome(self) -> Outcome:
        return _ENDED.get(self.code, Outcome.FAILED)


def run_command(
    command: Sequence[str],
    log: Path,
    limit: float,
    more: Mapping[str, str] | None = None,
    is_done: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run a command and write its output to a file.

    Args:
        more: variables of its environment.
        is_done: whether it has only to end; it then has STOP_SECONDS after the limit.

    Raises:
        KeyboardInterrupt: a signal has ended the wait; the command is stopped.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(more or {})},
            start_new_session=True,
            preexec_fn=_heed_signals,  # noqa: PLW1509 - no other thread runs
        )
    try:
        code = _exit_code(child, limit, is_done)
    except KeyboardInterrupt:
        _stop(child)
        raise
    if code is None:
        _stop(child)
    return Ended(code, time.monotonic() - began, log)


def _exit_code(child: "subprocess.Popen[bytes]", limit: float, is_done: Callable[[], bool]) -> int | None:
    """Wait for the exit code; None: the command has not ended."""
    for seconds in (limit, STOP_SECONDS):
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            if not is_done():
                break
    return None


def _heed_signals() -> None:
    """A program that a shell starts in the background ignores SIGINT, and its children inherit this.

    On Linux, the command is also stopped when this process is killed: it must not write into the next call's files.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    child.send_signal(signal.SIGINT)
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def collect(lane: SuiteLane) -> list[str]:
    """The tests of a lane.

    Raises:
        RuntimeError: pytest cannot collect them.
    """
    command = [PYTHON, "-m", "pytest", "--collect-only", "-q", *lane.selection]
    # An option in the environment could change the format of the listing.
    plain = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    return [line for line in done.stdout.splitlines() if "::" in line]


def run_part(part: Part) -> PartResult:
    """Run a part of either kind of lane.

    Raises:
        Interrupted, KeyboardInterrupt: a signal has ended it; a program has no result then.
    """
    return _run_tests(part, part.lane) if isinstance(part.lane, SuiteLane) else _run_program(part, part.lane)


def _run_tests(part: Part, lane: SuiteLane) -> PartResult:
    place = FOLDER / f"{lane.name}-{part.number}"
    tests, reports = place.with_suffix(".tests"), place.with_suffix(".jsonl")
    FOLDER.mkdir(parents=True, exist_ok=True)
    tests.write_text("\n".join(part.tests) + "\n", "utf-8")
    reports.unlink(missing_ok=True)
    command = lane.command(f"@{tests}", part.seed)
    plugin = {VARIABLE: str(reports.absolute()), "PYTEST_PLUGINS": "tests.nightly.reports"}

    def result(outcome: Outcome, seconds: float) -> PartResult:
        results, interrupted = read_reports(reports)
        faults = sum(result.faults for result in results.values())
        figures = {"planned": part.tests, "tests": results, "interrupted": interrupted, "faults": faults}
        return _result(part, outcome, seconds, shlex.join(command), **figures)

    def is_done() -> bool:
        return read_reports(reports)[0].keys() >= set(part.tests)

    began = time.monotonic()
    try:
        ended = run_command(command, place.with_suffix(".log"), part.limit, plugin, is_done)
    except KeyboardInterrupt as signalled:
        raise Interrupted(result(Outcome.STOPPED, time.monotonic() - began)) from signalled
    found = result(ended.outcome, ended.seconds)
    return replace(found, outcome=Outcome.FAILED) if has_hung(found) else found


def read_reports(file: Path) -> tuple[dict[str, CaseResult], tuple[str, ...]]:
    """The tests that ended or failed, and those that only started."""
    lines: list[dict[str, Any]] = (
        [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    )
    ended: dict[str, CaseResult] = {}
    for line in lines:
        if "ended" in line:
            has_failed = line["ended"] in ended and ended[line["ended"]].outcome == "failed"
            outcome = "failed" if has_failed else line["outcome"]
            ended[line["ended"]] = CaseResult(outcome, line["seconds"], line["faults"])
    return ended, tuple(line["begun"] for line in lines if line.get("begun", "") not in {"", *ended})


def _run_program(part: Part, lane: RunLane) -> PartResult:
    place = FOLDER / f"{lane.name}-{part.number}"
    file = place.with_suffix(".json")
    file.unlink(missing_ok=True)
    command = lane.command(part.seed, file)
    ended = run_command(command, place.with_suffix(".log"), part.limit)
    # A program cannot be resumed. Its limit exceeds its duration, so a stop at the limit is a failure.
    outcome = Outcome.PASSED if ended.code == 0 else Outcome.FAILED
    found = figures(lane, file, ended.log)
    return _result(part, outcome, ended.seconds, shlex.join(command), **found)


def _result(part: Part, outcome: Outcome, seconds: float, command: str, **found: Any) -> PartResult:
    today = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    return PartResult(part.lane.name, outcome, seconds, command, seed=part.seed, date=today, machine=machine(), **found)


def figures(lane: RunLane, file: Path, log: Path) -> dict[str, Any]:
    """The figures that a program has written to its file or its output."""
    if file.exists():
        found = json.loads(file.read_text("utf-8"))
        return {**found, "notes": tuple(found.get("notes", ()))}
    counted = re.search(lane.counted, log.read_text("utf-8", "replace")) if lane.counted else None
    return {"passed": int(counted[1])} if counted else {}


def tail(log: Path, lines: int = 30) -> str:
    """The end of a part's output."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])


def machine() -> str:
    """What the parts run on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    facts = {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory": f"{memory / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }
    return ", ".join(f"{name} {value}" for name, value in facts.items())
