"""Faults during a phase: kills, failpoints, cut connections, server crashes, a second runner, a lost history."""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from dmdelta.failpoint import CrashPoint
from tests.soak.ends import KILL, Cause, plan_failpoint
from tests.soak.scenes import Scene
from tests.soak.sources import KEYED, Source
from tests.soak.task import Runner
from tests.support.forgetting import forget_history
from tests.support.proxy import Proxy
from tests.support.relaying import wait_until

_SILVER = ("RELAY", "LAND", "SILVER", "CHECKPOINT", "MAINTENANCE")
POINTS = {side: tuple(point for point in CrashPoint if point.name.startswith(side)) for side in (_SILVER, "SINK")}
KINDS = {
    _SILVER: ("kill", "error:LakehouseError", "error:CommitConflict", "error:ENOSPC", "error:EACCES", "hang"),
    "SINK": ("kill", "error:TargetUnavailable", "hang"),
}
HANG_SECONDS = 5.0
MEET_SECONDS = 60.0
"""The time limit until a running task passes a point."""
END_SECONDS = 90.0
"""The time limit until a runner notices that another one has done its work."""
RETRIES = '"task failed, retrying automatically"'
"""What a runner logs after a commit conflict, before it reads its tables again."""
NOT_MET = "armed and not met"


@dataclass
class Faults:
    """
    Attributes:
        counts: what was done so far.
        causes: how many ends of the task's process the faults so far may have caused, by cause.
    """

    spark: SparkSession
    runner: Runner
    sources: Sequence[Source]
    proxies: Sequence[Proxy]
    counts: Counter[str] = field(default_factory=Counter)
    causes: Counter[Cause] = field(default_factory=Counter)
    _armed: tuple[Cause, ...] = ()
    _hung: float = 0.0
    _holds: bool = False

    @property
    def met(self) -> int:
        """How many faults were injected."""
        return sum(self.counts.values()) - 2 * self.counts[NOT_MET]

    def plan(self, rng: random.Random, seconds: float) -> list[tuple[float, Callable[[], object]]]:
        """One to three faults of a phase, and when."""
        kinds = (self.kill_runner, self.kill_relay, self.arm, self.arm, self.cut, self.cut)
        chosen = [(rng.uniform(0, seconds), rng.choice(kinds)) for _ in range(rng.randint(1, 3))]
        # Each has a random generator of its own: its draws do not depend on the others'.
        return [(at, partial(fault, random.Random(rng.getrandbits(32)))) for at, fault in chosen]

    def kill_runner(self, _: random.Random) -> None:
        self.runner.process.kill()
        self.counts["runner killed"] += 1
        self.causes.update(KILL)

    def end_runner(self) -> None:
        """The next process has another environment."""
        self.runner.end()
        self.causes.update(KILL)

    def kill_relay(self, rng: random.Random) -> None:
        folder = self.runner.task.relay / rng.choice(self.sources).source_id
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(json.loads((folder / "status.json").read_text())["pid"]), signal.SIGKILL)
            self.counts["relay killed"] += 1
            self.causes[Cause.RELAY_LOST] += 1

    def cut(self, rng: random.Random) -> None:
        rng.choice(self.proxies).cut()
        self.counts["connections cut"] += 1
        self.causes[Cause.UNREACHABLE] += 1

    def arm(self, rng: random.Random) -> None:
        """The next process that passes the point meets the fault."""
        if not self.runner.task.failpoint.exists():
            side = "SINK" if self.runner.task.target is not None and rng.random() < 0.4 else _SILVER
            point, kind = rng.choice(POINTS[side]), rng.choice(KINDS[side])
            self._arm(point, kind, rng.randint(1, 3))
            self.counts[f"{point.value} armed: {kind}"] += 1

    def kill_server(self, rng: random.Random) -> None:
        """Between two phases: its writers are idle."""
        source = rng.choice(self.sources)
        source.server.kill()
        source.server.start()
        source.reconnect()
        self.counts[Scene.SERVER_KILLED.value] += 1
        self.causes[Cause.UNREACHABLE] += 1

    def hang_a_commit(self) -> None:
        """A writer of silver hangs right before its commit, until `take_over` releases it.

        Raises:
            AssertionError: no commit hung.
        """
        self._holds = True
        self._arm(CrashPoint.SILVER_BEFORE_COMMIT, "hang")
        self._wait_for(lambda: self._hangs.exists() or self.runner.has_ended, MEET_SECONDS)
        assert not self.runner.has_ended, self.runner.log

    def take_over(self) -> None:
        """Another machine does all the work while the runner's is suspended; then the hung commit continues.

        The runner notices it by a commit of the other one, which ends it, or first by a conflict of a commit that was in
        flight: then it reads its tables again, and continues where the other one has ended.

        Raises:
            AssertionError: the runner has ended, or does not notice the other one.
        """
        assert not self.runner.has_ended, self.runner.log
        process = self.runner.process
        retries = process.count(RETRIES)
        self.runner.freeze()
        try:
            self._catch_up_elsewhere()
        finally:
            self.runner.thaw()
            self._hangs.unlink()
            self._holds = False
        self.causes[Cause.FENCED] += 1
        self._wait_for(lambda: self.runner.has_ended or process.count(RETRIES) > retries, END_SECONDS)
        self.counts[Scene.TAKEOVER.value] += 1

    def _catch_up_elsewhere(self) -> None:
        other = self.runner.task.elsewhere()
        other.folder.mkdir(exist_ok=True)
        with (other.folder / "run.log").open("a") as said, redirect_stdout(said), redirect_stderr(said):
            other.catch_up()

    def forget(self) -> None:
        """The runner dies after a commit, and before its restart the history of some tables is removed.

        Raises:
            AssertionError: the runner does not pass the point.
        """
        self._arm(CrashPoint.SILVER_AFTER_COMMIT, "kill")
        self._wait_for(lambda: self.runner.has_ended and not self.runner.task.failpoint.exists(), MEET_SECONDS)
        for source in self.sources:
            for table in KEYED:
                place = Path(self.runner.task.root) / "silver" / source.load / table
                if (place / "_delta_log").exists():
                    forget_history(self.spark, place)
        self.counts[Scene.FORGOTTEN.value] += 1

    def tend(self) -> None:
        """Keep the task running; a hanging point is released after a while."""
        assert self.runner.process
        if self._holds or not self._hangs.exists():
            self._hung = 0.0
        elif not self._hung:
            self._hung = time.monotonic()
        elif time.monotonic() - self._hung > HANG_SECONDS:
            self._hangs.unlink(missing_ok=True)

    def disarm(self) -> None:
        """Remove a fault that no process has met by the end of a phase."""
        with suppress(FileNotFoundError):
            self.runner.task.failpoint.unlink()
            self.counts[NOT_MET] += 1
            self.causes.subtract(self._armed)

    def _arm(self, point: CrashPoint, fault: str, nth: int = 1) -> None:
        self.runner.task.arm(point, fault, nth)
        self._armed = plan_failpoint(point, fault)
        self.causes.update(self._armed)

    def _wait_for(self, condition: Callable[[], object], seconds: float) -> None:
        try:
            wait_until(condition, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.runner.log}") from None

    @property
    def _hangs(self) -> Path:
        return self.runner.task.hangs
