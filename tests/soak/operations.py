"""Operators' commands in a phase: ad-hoc snapshots, pauses, replays into live tables, maintenance. Each must succeed.

A command that a fault interrupts is repeated while the sources are written, and once more when they are idle. Successes
under load are counted separately: a whole soak has one of each command.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ChangeState, ReadStatus
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.control.state import Request, State
from dmdelta.errors import DmdeltaError
from tests.soak.commands import Refused, ask, run_command
from tests.soak.snapshots import RequestedSnapshot, is_complete, read_snapshots
from tests.soak.sources import KEYED, Source
from tests.soak.task import SoakTask
from tests.support.shop import TABLES

TRIES = 6
"""The number of tries of a command; the task may just have been restarted."""
PAUSE_SECONDS = 2.0
AGAIN_SECONDS = 5.0
"""Between two tries of a command: the task may be starting."""
SNAPSHOT_SECONDS = 300.0
"""The time limit until a requested snapshot is complete, while the sources are idle."""
HOLDING = ("maintain", "replay")
"""The commands that exclude the task from its tables."""


Act = Callable[[], object]
"""An operator's action; it raises `Refused` if it does not succeed."""


@dataclass
class Operations:
    """Commands in this process, whose Spark is warm, one after the other in a thread.

    Attributes:
        places: for each phase that has begun, the end of each source's log.
        counts: the commands that succeeded so far; of snapshots those that are complete.
        under_load: those of them that began while the sources were written. A snapshot is also complete before the task
            has caught up.
        has_load: the sources are being written.
        holds: how often a command has tried to exclude the task from its tables.
        snapshots: those that are requested and not complete.
    """

    task: SoakTask
    places: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    under_load: Counter[str] = field(default_factory=Counter)
    has_load: bool = False
    holds: int = 0
    snapshots: list[RequestedSnapshot] = field(default_factory=list)
    _planned: int = 0
    _again: list[Act] = field(default_factory=list)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _running: list["Future[object]"] = field(default_factory=list)

    def begin(self) -> None:
        """A phase begins."""
        self.places.append({source.source_id: source.place for source in self.task.sources})

    def plan(self, rng: random.Random, seconds: float) -> list[tuple[float, Act]]:
        """The commands of a phase, and when: one that is soon done, and one that holds the tables, each kind in turn.

        The first of a phase begins while the sources are written, however slow the machine is; the second one waits for
        it. Four phases with commands have each kind as the first one. The first phase loads the tables, and a replay
        needs two places before the current one.
        """
        turn, phases = self._planned, len(self.places)
        self._planned += 1
        soon = (self.snapshot, self.pause)
        holding = (self.maintain, self.replay)[: max(0, phases - 1)]
        kinds = [soon[turn % len(soon)], *([holding[turn % len(holding)]] if holding else [])]
        if turn % 4 >= 2:
            kinds.reverse()
        times = sorted(rng.uniform(0, seconds) for _ in kinds)
        return [(at, partial(self._submit, kind(rng))) for at, kind in zip(times, kinds, strict=True)]

    def snapshot(self, rng: random.Random) -> Act:
        """Some tables are read again."""
        source = rng.choice(self.task.sources)
        tables = rng.sample(self._tables(source), rng.randint(1, 3))

        def act() -> None:
            loaded, before = self.has_load, read_snapshots(self.task, source.source_id)
            ask(self.task, "snapshot", *(f"--table={table}" for table in tables))
            names = frozenset((schema, name) for schema, _, name in (table.partition(".") for table in tables))
            self.snapshots.append(RequestedSnapshot(source.source_id, names, before, loaded))

        return act

    def pause(self, _: random.Random) -> Act:
        """The task is paused for a moment, with all tables at one position."""

        def act() -> None:
            self._do("pause")
            time.sleep(PAUSE_SECONDS)
            self._do("resume")

        return act

    def maintain(self, rng: random.Random) -> Act:
        """Some tables are compacted and vacuumed; the task is paused meanwhile."""
        source = rng.choice(self.task.sources)
        pattern = rng.choice(
            (f"{source.shop}.o*", f"{source.shop}.[cpi]*", f"{source.load}.*", f"{source.shards[0]}.*")
        )
        return partial(self._do, "maintain", f"--table={pattern}")

    def replay(self, rng: random.Random) -> Act:
        """A range of history is replayed into live tables, and changes nothing."""
        source = rng.choice(self.task.sources)
        begin, end = sorted(rng.sample(range(len(self.places) - 1), 2))
        table = rng.choice(self._tables(source))
        bounds = [f"--{word}={self.places[at][source.source_id]}" for word, at in (("from", begin), ("to", end))]

        def act() -> None:
            for done in self._do("replay", f"--table={table}", f"--source={source.source_id}", *bounds):
                damage = {kind: done[kind] for kind in ("missing", "different", "extra") if done[kind]}
                assert not damage, f"a replay of {table} from {bounds} has repaired {damage}"

        return act

    def validate(self, against: str) -> list[dict[str, object]]:
        """The results of `dmdelta validate` for each table."""
        code, out, said = run_command(self.task, "validate", f"--against={against}")
        if code not in (0, 6):
            raise Refused(f"dmdelta validate --against={against}: exit code {code}\n{said}")
        self.counts[f"validate, {against}"] += 1
        return list(json.loads(out))

    def finish(self, tend: Act) -> None:
        """Wait for the commands of the phase; those that did not succeed are kept for `repeat`."""
        while not all(future.done() for future in self._running):
            tend()
            time.sleep(0.2)
        for future in self._running:
            future.result()
        self._running = []

    def repeat(self, tend: Act) -> None:
        """Commands that did not succeed under load succeed now.

        Raises:
            Refused: it does not.
        """
        again, self._again = self._again, []
        for act in again:
            self.wait_for(partial(self._insist, act), tend)

    def record_snapshots(self, *, caught_up: bool) -> None:
        """Count the snapshots that are complete now.

        Args:
            caught_up: the task had caught up before.
        """
        now = {one.source_id: read_snapshots(self.task, one.source_id) for one in self.snapshots}
        done = [one for one in self.snapshots if is_complete(one, now[one.source_id])]
        self.snapshots = [one for one in self.snapshots if one not in done]
        for one in done:
            self._count("snapshot", under_load=one.under_load and not caught_up)

    def await_snapshots(self, tend: Act) -> None:
        """Wait until all requested snapshots are complete.

        Raises:
            AssertionError: they are not in time.
        """
        deadline = time.monotonic() + SNAPSHOT_SECONDS
        self.record_snapshots(caught_up=True)
        while self.snapshots:
            assert time.monotonic() < deadline, f"snapshots are not complete: {self.snapshots}"
            tend()
            time.sleep(1)
            self.record_snapshots(caught_up=True)

    def wait_for(self, act: Act, tend: Act) -> None:
        """Run an action after the others, while the task is kept running."""
        self._running.append(self._pool.submit(act))
        self.finish(tend)

    def resume_if_paused(self) -> None:
        """End a pause that outlived its command: the task was killed meanwhile, or did not answer in time."""
        spec = load_spec(self.task.spec)
        with suppress(DmdeltaError):  # it is requested again
            status = ask_running(spec, ReadStatus())
            if status is not None and status.result["state"] == State.PAUSED.value:
                ask_running(spec, ChangeState(command=Request.RESUME))

    def _submit(self, act: Act) -> None:
        self._running.append(self._pool.submit(self._try, act))

    def _try(self, act: Act) -> None:
        """Repeat an action as long as the sources are written; then it is kept for `repeat`."""
        while True:
            try:
                act()
            except Refused:
                self.counts["repeated after a fault"] += 1
            else:
                return
            if not self.has_load:
                self._again.append(act)
                return
            time.sleep(AGAIN_SECONDS)

    def _insist(self, act: Act) -> None:
        for left in reversed(range(TRIES)):
            try:
                act()
            except Refused:
                if not left:
                    raise
                time.sleep(AGAIN_SECONDS)
            else:
                return

    def _do(self, command: str, *arguments: str) -> list[dict[str, object]]:
        """The answer of a command, whose success is counted.

        Raises:
            Refused: it did not succeed.
        """
        loaded = self.has_load
        self.holds += command in HOLDING
        answer = ask(self.task, command, *arguments)
        self._count(command, under_load=loaded)
        return answer

    def _count(self, command: str, *, under_load: bool) -> None:
        self.counts[command] += 1
        self.under_load[command] += under_load

    def _tables(self, source: Source) -> Sequence[str]:
        """Tables with a key that exist during the whole soak."""
        shop = [f"{source.shop}.{table}" for table in TABLES]
        return [*shop, *(f"{source.load}.{table}" for table in KEYED)]
