"""Operators' commands in a phase: ad-hoc snapshots, pauses, replays into live tables, maintenance. Each must succeed.

A command that a fault interrupts is repeated when the sources are idle.
"""

import io
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial

from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ChangeState, ReadStatus
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.control.state import Request, State
from dmdelta.errors import DmdeltaError
from tests.soak.sources import KEYED, Source
from tests.soak.task import SoakTask
from tests.support.shop import TABLES

TRIES = 6
"""The number of tries of a command; the task may just have been restarted."""
PAUSE_SECONDS = 2.0


Act = Callable[[], object]
"""An operator's action; it raises `Refused` if it does not succeed."""


class Refused(Exception):
    """A command that did not succeed: exit code and stderr."""


@dataclass
class Operations:
    """Commands in this process, whose Spark is warm, one after the other in a thread.

    Attributes:
        places: for each phase that has begun, the end of each source's log.
        counts: the commands that succeeded so far.
    """

    task: SoakTask
    places: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _planned: int = 0
    _again: list[Act] = field(default_factory=list)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _running: list["Future[object]"] = field(default_factory=list)

    def begin(self) -> None:
        """A phase begins."""
        self.places.append({source.source_id: source.place for source in self.task.sources})

    def plan(self, rng: random.Random, seconds: float) -> list[tuple[float, Act]]:
        """One or two commands of a phase, and when; the first of them are each command in turn."""
        kinds = [self.snapshot, self.pause, self.maintain, *([self.replay] if len(self.places) > 2 else [])]
        first = kinds[self._planned % len(kinds)]
        self._planned += 1
        others = rng.sample([kind for kind in kinds if kind != first], rng.randint(0, 1))
        chosen = [(rng.uniform(0, seconds), kind(rng)) for kind in (first, *others)]
        return [(at, partial(self._submit, act)) for at, act in chosen]

    def snapshot(self, rng: random.Random) -> Act:
        """Some tables are read again."""
        tables = rng.sample(self._tables(rng.choice(self.task.sources)), rng.randint(1, 3))
        return partial(self._do, "snapshot", *(f"--table={table}" for table in tables))

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
        code, out, said = self._execute("validate", f"--against={against}")
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
        try:
            act()
        except Refused:
            self.counts["repeated after a fault"] += 1
            self._again.append(act)

    def _insist(self, act: Act) -> None:
        for left in reversed(range(TRIES)):
            try:
                act()
            except Refused:
                if not left:
                    raise
                time.sleep(5)
            else:
                return

    def _do(self, command: str, *arguments: str) -> list[dict[str, object]]:
        """A command's answer.

        Raises:
            Refused: it did not succeed.
        """
        code, out, said = self._execute(command, *arguments)
        assert "Traceback" not in said, said
        if code:
            raise Refused(f"dmdelta {command} {' '.join(arguments)}: exit code {code}\n{said}")
        self.counts[command] += 1
        answer = json.loads(out)
        return list(answer) if isinstance(answer, list) else [answer]

    def _execute(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Exit code, the JSON document, and the end of stderr."""
        out, said = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(said):
            code = execute([command, str(self.task.spec), *arguments, "--json"])
        return code, out.getvalue(), said.getvalue()[-4000:]

    def _tables(self, source: Source) -> Sequence[str]:
        """Tables with a key that exist during the whole soak."""
        shop = [f"{source.shop}.{table}" for table in TABLES]
        return [*shop, *(f"{source.load}.{table}" for table in KEYED)]
