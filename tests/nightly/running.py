"""Runs a part in its own process group, until it ends or is stopped at its time limit."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.nightly.lanes import FOLDER, PYTHON, RunLane, SuiteLane
from tests.nightly.plan import Part
from tests.nightly.reports import VARIABLE
from tests.nightly.state import CaseResult, Outcome, PartResult

STOP_SECONDS = 120.0
"""Maximum seconds that a part takes to end after SIGINT: fixtures stop their servers and JVMs."""
_ENDED = {0: Outcome.PASSED, None: Outcome.STOPPED}


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


def run_command(command: Sequence[str], log: Path, limit: float, more: Mapping[str, str] | None = None) -> Ended:
    """Run a command and write its output to a file."""
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
            preexec_fn=_heed_interrupts,  # noqa: PLW1509 - no other thread runs
        )
    code: int | None = None
    try:
        code = child.wait(limit)
    except subprocess.TimeoutExpired:
        _stop(child)
    except KeyboardInterrupt:
        _stop(child)
        raise
    return Ended(code, time.monotonic() - began, log)


def _heed_interrupts() -> None:
    """A program that a shell starts in the background ignores SIGINT, and its children inherit this."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
    """Run a part of either kind of lane."""
    found = _run_tests(part, part.lane) if isinstance(part.lane, SuiteLane) else _run_program(part, part.lane)
    return replace(found, date=f"{datetime.now(timezone.utc):%Y-%m-%d}")


def _run_tests(part: Part, lane: SuiteLane) -> PartResult:
    place = FOLDER / f"{lane.name}-{part.number}"
    tests, reports = place.with_suffix(".tests"), place.with_suffix(".jsonl")
    FOLDER.mkdir(parents=True, exist_ok=True)
    tests.write_text("\n".join(part.tests) + "\n", "utf-8")
    reports.unlink(missing_ok=True)
    command = lane.command(f"@{tests}")
    plugin = {VARIABLE: str(reports.absolute()), "PYTEST_PLUGINS": "tests.nightly.reports"}
    ended = run_command(command, place.with_suffix(".log"), part.limit, plugin)
    results, interrupted = read_reports(reports)
    return PartResult(
        lane.name,
        ended.outcome,
        ended.seconds,
        shlex.join(command),
        planned=part.tests,
        tests=results,
        interrupted=interrupted,
        faults=sum(result.faults for result in results.values()),
    )


def read_reports(file: Path) -> tuple[dict[str, CaseResult], tuple[str, ...]]:
    """The tests that ended, and those that only started."""
    lines: list[dict[str, Any]] = (
        [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    )
    ended = {
        line["ended"]: CaseResult(line["outcome"], line["seconds"], line["faults"]) for line in lines if "ended" in line
    }
    return ended, tuple(line["begun"] for line in lines if line.get("begun", "") not in {"", *ended})


def _run_program(part: Part, lane: RunLane) -> PartResult:
    place = FOLDER / f"{lane.name}-{part.number}"
    file, seed = place.with_suffix(".json"), part.seed or 0
    file.unlink(missing_ok=True)
    command = lane.command(seed, file)
    ended = run_command(command, place.with_suffix(".log"), part.limit)
    # A program cannot be resumed. Its limit exceeds its duration, so a stop at the limit is a failure.
    outcome = Outcome.PASSED if ended.code == 0 else Outcome.FAILED
    found = figures(lane, file, ended.log)
    return PartResult(lane.name, outcome, ended.seconds, shlex.join(command), seed=seed, **found)


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
