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

from tests.soak.ends import Cause, unexplained_ends
from tests.soak.faults import Faults
from tests.soak.judges import Judges
from tests.soak.operations import Operations
from tests.soak.scenes import Scene, plan_scene
from tests.soak.shards import ShardChanges
from tests.soak.sources import Load, Source

SECONDS = 15.0
"""The period of a phase in which faults and commands begin."""
MOST_FAILURES = 4
"""A task that ends this often without a kill while its sources are idle does not catch up."""
Act = tuple[float, Callable[[], object]]
"""An action, and its time in seconds after the start of a phase."""


@dataclass
class Soak:
    """The task, its sources, the faults, and the comparisons.

    Attributes:
        settle_seconds: the time limit for the task to reach the end of its sources.
        settled: for each phase, the seconds from the end of its load, faults and commands until silver, and the target,
            had the marks that the sources write at its end.
        equal: the seconds until the full diff found all tables equal; the time of repeated commands and of the diff is
            part of it.
    """

    sources: Sequence[Source]
    faults: Faults
    operations: Operations
    judges: Judges
    changes: ShardChanges
    settle_seconds: float = 300.0
    settled: list[float] = field(default_factory=list)
    equal: list[float] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Row changes written so far."""
        return sum(source.rows for source in self.sources)

    def phase(self, number: int, scene: Scene | None = None, only: Load | None = None) -> str:
        """Load and faults, then the comparison: a line about it.

        Args:
            scene: the kind of faults; None: the one that has its turn.
            only: the load; None: all of it.

        Raises:
            AssertionError: a table differs from its source, or the task does not catch up or has ended by itself.
        """
        rng = random.Random(f"{self.changes.seed}/faults/{number}")
        scene = scene or plan_scene(self.changes.seed, number, sinks=self.judges.task.target is not None)
        before, rows, began = self._counts(), self.rows, time.monotonic()
        self.operations.begin()
        planned = self._plan(rng, scene)
        with self._writing(number, only) as (writers, met):
            self._disturb(planned, writers, met)
        if scene is Scene.TAKEOVER:
            self.faults.take_over()
        elif scene is Scene.SERVER_KILLED:
            self.faults.kill_server(rng)
        written = time.monotonic()
        tables = self._compare(number, written)
        self.faults.disarm()
        if only is None:
            self.operations.wait_for(self.judges.validate, self.tend)
        self._check_ends()
        what = ", ".join(f"{name} {n:,}" for name, n in sorted((self._counts() - before).items())) or "nothing"
        return (
            f"phase {number}: {self.rows - rows:,} rows written in {written - began:.0f} s, settled after "
            f"{self.settled[-1]:.0f} s, {tables} tables equal after {self.equal[-1]:.0f} s; meanwhile: {what}"
        )

    def _compare(self, number: int, written: float) -> int:
        """Wait for the task, repeat commands, compare: the number of tables."""
        self._settle(number)
        self.settled.append(time.monotonic() - written)
        self.operations.record_snapshots(caught_up=False)
        self.operations.repeat(self.tend)
        self.operations.await_snapshots(self.tend)
        tables = self.judges.compare(self.tend)
        self.equal.append(time.monotonic() - written)
        return tables

    def _check_ends(self) -> None:
        self.tend()  # an end is recorded once the task is started again
        runner = self.faults.runner
        injected = self.faults.causes + Counter({Cause.HELD: self.operations.holds})
        found = [*runner.unexplained, *unexplained_ends(runner.causes, injected)]
        listed = "\n".join(found)
        assert not found, f"no injected fault explains that the task has ended:\n{listed}\n{runner.last_log}"

    def tend(self) -> None:
        """Keep the task running."""
        self.faults.tend()

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
        try:
            while (loaded := not all(writer.done() for writer in writers)) or planned:
                self.operations.has_load = loaded
                while planned and planned[0][0] <= time.monotonic() - began:
                    planned.pop(0)[1]()
                if not planned:
                    met.set()
                self.tend()
                time.sleep(0.2)
        finally:
            self.operations.has_load = False  # commands are no longer repeated
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
