"""The phases of a soak: load with faults and operators' commands, then the sources are idle and all tables are compared."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event

from tests.soak.faults import Faults
from tests.soak.judges import Judges
from tests.soak.operations import Operations
from tests.soak.scenes import Scene
from tests.soak.shards import ShardChanges
from tests.soak.sources import Load, Source

SECONDS = 15.0
"""The period of a phase in which faults and commands begin."""
SERVER_KILLS = 0.1
MOST_FAILURES = 4
"""A task that ends this often with an error while its sources are idle does not catch up."""
_SCENES = (Scene.FAULTS, Scene.TAKEOVER, Scene.FORGOTTEN)
_WEIGHTS = (8, 1, 1)
Act = tuple[float, Callable[[], object]]
"""An action, and its time in seconds after the start of a phase."""


@dataclass
class Soak:
    """The task, its sources, the faults, and the comparisons.

    Attributes:
        settle_seconds: the time limit for the task to reach the end of its sources.
        settled: for each phase, the seconds from the end of its load, faults and commands until silver, and the target,
            had it.
    """

    sources: Sequence[Source]
    faults: Faults
    operations: Operations
    judges: Judges
    changes: ShardChanges
    settle_seconds: float = 300.0
    settled: list[float] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Row changes written so far."""
        return sum(source.rows for source in self.sources)

    def phase(self, number: int, scene: Scene | None = None, only: Load | None = None) -> str:
        """Load and faults, then the comparison: a line about it.

        Args:
            scene: the kind of faults; None: the seed decides.
            only: the load; None: all of it.

        Raises:
            AssertionError: a table differs from its source, or the task does not catch up.
        """
        rng = random.Random(f"{self.changes.seed}/faults/{number}")
        scene = scene or self._scene(rng, number)
        before, rows, began = self._counts(), self.rows, time.monotonic()
        self.operations.begin()
        planned, kills_server = self._plan(rng, scene), rng.random() < SERVER_KILLS
        with self._writing(number, only) as (writers, met):
            self._disturb(planned, writers, met)
        if scene is Scene.TAKEOVER:
            self.faults.take_over()
        elif scene is Scene.FAULTS and kills_server:
            self.faults.kill_server(rng)
        written = time.monotonic()
        self._settle(number)
        settled = time.monotonic()
        self.settled.append(settled - written)
        self.operations.repeat(self.tend)
        tables = self.judges.compare(self.tend)
        self.faults.disarm()
        if only is None:
            self.operations.wait_for(self.judges.validate, self.tend)
        what = ", ".join(f"{name} {n:,}" for name, n in sorted((self._counts() - before).items())) or "nothing"
        return (
            f"phase {number}: {self.rows - rows:,} rows written in {written - began:.0f} s, settled after "
            f"{settled - written:.0f} s, {tables} tables equal after {time.monotonic() - settled:.0f} s; meanwhile: {what}"
        )

    def tend(self) -> None:
        """Keep the task running."""
        self.faults.tend()

    def _scene(self, rng: random.Random, number: int) -> Scene:
        (chosen,) = rng.choices(_SCENES, _WEIGHTS)
        # The first phase loads the tables. A suspended sink locks rows of the target, also for the second runner.
        sinks = self.faults.runner.task.target is not None
        return Scene.FAULTS if number == 1 or (sinks and chosen is Scene.TAKEOVER) else chosen

    def _plan(self, rng: random.Random, scene: Scene) -> list[Act]:
        """The actions during the load, in order."""
        at = rng.uniform(2, SECONDS / 2)
        if scene is Scene.TAKEOVER:
            return [(at, self.faults.hang_a_commit)]
        if scene is Scene.FORGOTTEN:
            return [(at, self.faults.forget)]
        if scene is Scene.QUIET:
            return []
        acts = [*self.faults.plan(rng, SECONDS), *self.operations.plan(rng, SECONDS)]
        return sorted(acts, key=lambda act: act[0])

    @contextmanager
    def _writing(self, number: int, only: Load | None) -> Iterator[tuple[list["Future[None]"], Event]]:
        """The writers of the sources, and the event that a load of one kind waits for: the faults have been met."""
        met = Event()
        with ThreadPoolExecutor(len(self.sources)) as pool:
            writers = [pool.submit(work) for work in self._load(number, only, met)]
            try:
                yield writers, met
            finally:
                met.set()
            for writer in writers:
                writer.result()

    def _load(self, number: int, only: Load | None, met: Event) -> list[Callable[[], None]]:
        if only is not None:
            return [partial(source.work_around, met, number, only) for source in self.sources]
        of_shards = self.changes.of(number)
        return [partial(source.work, number, of_shards) for source in self.sources]

    def _disturb(self, planned: list[Act], writers: Sequence["Future[None]"], met: Event) -> None:
        began = time.monotonic()
        while not all(writer.done() for writer in writers) or planned:
            while planned and planned[0][0] <= time.monotonic() - began:
                planned.pop(0)[1]()
            if not planned:
                met.set()
            self.tend()
            time.sleep(0.2)
        self.operations.finish(self.tend)

    def _settle(self, number: int) -> None:
        deadline, runner = time.monotonic() + self.settle_seconds, self.faults.runner
        runner.failures, waiting = 0, list(self.sources)
        while waiting:
            late = f"the task does not come to the mark of {waiting[0].letter}"
            assert time.monotonic() < deadline, f"{late}:\n{runner.log}"
            assert runner.failures < MOST_FAILURES, f"{late}, but ends again and again:\n{runner.last_log}"
            self.tend()
            self.operations.resume_if_paused()
            time.sleep(1)
            waiting = [source for source in waiting if self.judges.mark(source) < number]

    def _counts(self) -> "Counter[str]":
        return self.faults.counts + self.operations.counts
