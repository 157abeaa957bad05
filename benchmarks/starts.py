"""When commands that start Spark begin to work, according to what they show on a terminal."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.support.task import Task
from tests.support.terminal import on_terminal

BEGIN_SECONDS = 8.0
"""The target of the time at which a command begins its work."""
STARTING, LOOKING_UP = "starting Spark", "looking up tables"
QUERIES: tuple[tuple[str, ...], ...] = (
    ("events", "--limit=1"),
    ("validate",),
    ("quality",),
    ("report", f"--output={os.devnull}"),
)
GOOD = (0, 6)
"""Exit codes of a command that ended before it was terminated: a finding is a result."""
HEAD = (
    "| command | runs | first output s | Spark started s | begins work s | target s |",
    "| --- | ---: | ---: | ---: | ---: | --- |",
)


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds since a process was started.

    Attributes:
        first: it showed anything.
        ready: Spark had started.
        begins: its own work began: it had also looked up the tables.
    """

    first: float
    ready: float
    begins: float


@dataclass
class Starts:
    """The starts of commands on a task."""

    task: Task
    found: dict[str, list[Start]] = field(default_factory=dict)

    def measure(self, command: Sequence[str]) -> None:
        """Run a command until it begins to work: a word, then its options.

        Raises:
            SystemExit: it failed, or showed nothing.
        """
        program = str(Path(sys.executable).with_name("dmdelta"))
        word, *options = command
        with self.task.environment():
            shown = on_terminal([program, word, str(self.task.spec), *options], os.environ, works)
        if shown.first is None or (shown.code not in GOOD and not works(shown.stages)):
            raise SystemExit(f"{' '.join(command)} failed:\n{shown.stderr}")
        self.found.setdefault(" ".join(command), []).append(start_of(shown.first, shown.stages, shown.ended))

    def measure_all(self, runs: int) -> None:
        """Run each command so many times.

        Raises:
            SystemExit: as `measure`.
        """
        for _ in range(runs):
            for command in QUERIES:
                self.measure(command)

    def lines(self) -> Iterator[str]:
        """A table: the median of each time."""
        yield from HEAD
        for command, starts in self.found.items():
            times = [median(getattr(start, name) for start in starts) for name in Start.__slots__]
            target = f"≤ {BEGIN_SECONDS:g}{'' if times[2] <= BEGIN_SECONDS else ', missed'}"
            cells = " | ".join(f"{seconds:.1f}" for seconds in times)
            yield f"| `{command}` | {len(starts)} | {cells} | {target} |"


def start_of(first: float, stages: Mapping[str, float], ended: float) -> Start:
    """The times of a command.

    Args:
        stages: when each stage was first shown.
        ended: when it ended, for a command that did not show the stage of its work.
    """
    ready = [seconds for stage, seconds in stages.items() if stage != STARTING]
    begins = [seconds for stage, seconds in stages.items() if stage not in (STARTING, LOOKING_UP)]
    return Start(first, min(ready, default=ended), min(begins, default=ended))


def works(stages: Iterable[str]) -> bool:
    """Whether a command that has shown these stages has begun to work."""
    return any(stage not in (STARTING, LOOKING_UP) for stage in stages)
