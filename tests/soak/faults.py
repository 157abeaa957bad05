"""What goes wrong meanwhile: kills, failpoints, cut connections, servers that die."""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from dmdelta.failpoint import HANGS, CrashPoint
from tests.soak.sources import Source
from tests.support.proxy import Proxy
from tests.support.task import Task, TaskProcess

POINTS = tuple(
    point for point in CrashPoint if point.name.startswith(("RELAY", "LAND", "SILVER", "CHECKPOINT", "CARE"))
)
KINDS = ("kill", "error:LakehouseError", "error:CommitConflict", "error:ENOSPC", "error:EACCES", "hang")
HANG_SECONDS = 5.0
NOT_MET = "armed and not met"


@dataclass
class Runner:
    """The task's process, started again whenever it has ended.

    Attributes:
        ended: how often with which exit code; a negative one is a signal's.
    """

    task: Task
    ended: Counter[int] = field(default_factory=Counter)
    _process: TaskProcess | None = None

    @property
    def process(self) -> TaskProcess:
        if self._process is None or self._process.poll() is not None:
            if self._process is not None:
                self.ended[int(self._process.poll() or 0)] += 1
            self._process = TaskProcess(self.task, "run", ())
        return self._process

    def end(self) -> None:
        if self._process is not None:
            self._process.end()


@dataclass
class Faults:
    """
    Attributes:
        counts: what was done so far.
    """

    runner: Runner
    sources: Sequence[Source]
    proxies: Sequence[Proxy]
    counts: Counter[str] = field(default_factory=Counter)
    _hung: float = 0.0

    @property
    def met(self) -> int:
        """How many faults were injected."""
        return sum(self.counts.values()) - 2 * self.counts[NOT_MET]

    def plan(self, rng: random.Random, seconds: float) -> list[tuple[float, Callable[[random.Random], None]]]:
        """One to three faults of a phase, and when."""
        kinds = (self.kill_runner, self.kill_relay, self.arm, self.arm, self.cut, self.cut)
        return sorted(
            ((rng.uniform(0, seconds), rng.choice(kinds)) for _ in range(rng.randint(1, 3))), key=lambda x: x[0]
        )

    def kill_runner(self, _: random.Random) -> None:
        self.runner.process.kill()
        self.counts["runner killed"] += 1

    def kill_relay(self, rng: random.Random) -> None:
        folder = self.runner.task.relay / f"s{rng.randrange(len(self.sources)) + 1}"
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(json.loads((folder / "status.json").read_text())["pid"]), signal.SIGKILL)
            self.counts["relay killed"] += 1

    def cut(self, rng: random.Random) -> None:
        rng.choice(self.proxies).cut()
        self.counts["connections cut"] += 1

    def arm(self, rng: random.Random) -> None:
        """Whoever comes by next."""
        if not self.runner.task.failpoint.exists():
            point, kind = rng.choice(POINTS), rng.choice(KINDS)
            self.runner.task.arm(point, kind, rng.randint(1, 3))
            self.counts[f"{point.value} armed: {kind}"] += 1

    def kill_server(self, rng: random.Random) -> None:
        """Between two phases: its writers stand still."""
        source = rng.choice(self.sources)
        source.server.kill()
        source.server.start()
        source.reconnect()
        self.counts["server killed"] += 1

    def tend(self) -> None:
        """Keep the task at work; what hangs is let go on after a while."""
        assert self.runner.process
        hangs = self.runner.task.failpoint.with_name(self.runner.task.failpoint.name + HANGS)
        if not hangs.exists():
            self._hung = 0.0
        elif not self._hung:
            self._hung = time.monotonic()
        elif time.monotonic() - self._hung > HANG_SECONDS:
            hangs.unlink(missing_ok=True)

    def disarm(self) -> None:
        """What nobody has met by the end of a phase is taken back."""
        with suppress(FileNotFoundError):
            self.runner.task.failpoint.unlink()
            self.counts[NOT_MET] += 1
