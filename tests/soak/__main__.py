"""`make soak MINUTES=60 SEED=7`: a task over MySQL and MariaDB under random load and faults, compared repeatedly.

In each phase both sources are written for some twenty seconds with faults and operators' commands; then they are
idle, and once the task has caught up every table of silver, and of the sink's target, is compared with its source by
a full diff and by `dmdelta validate`. Any difference ends the soak with the seed, and so does an end of the task that
no injected fault explains. Of odd seeds the task has a sink; of even ones the sources execute the cases of the DDL
suite.

`--sabotage GUARD`: phases that pass, and with the guard switched off must fail.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dmdelta.lakehouse.session import open_session
from tests.soak.faults import Faults
from tests.soak.judges import Judges
from tests.soak.operations import Operations
from tests.soak.phases import Soak
from tests.soak.report import figures, is_over, shortcomings
from tests.soak.scenes import SABOTAGE, Scene
from tests.soak.shards import ShardChanges
from tests.soak.sources import Source
from tests.soak.task import Runner, SoakTask, password_variable
from tests.support.proxy import Proxy
from tests.support.sabotage import Guard, sabotaged_environment
from tests.support.servers import running

KINDS = {"a": "mysql80", "b": "mariadb"}
TARGET = "mariadb"
WHOLE_MINUTES = 20.0
"""A soak of this length has every load, every special scene, and every command under load. Where the machine is slow, it
takes longer."""
SABOTAGED_SECONDS = (180.0, 30.0)
"""Seconds to settle and to become equal, for a small load."""


@contextmanager
def opened(seed: int, folder: Path, guard: Guard | None) -> Iterator[Soak]:
    """Servers, proxies and the task, for the duration of a `with`."""
    spark = open_session("dmdelta soak")
    with ExitStack() as stack:
        sinks = seed % 2 == 1 and guard is None
        servers = {letter: stack.enter_context(running(kind)) for letter, kind in KINDS.items()}
        proxies = [stack.enter_context(Proxy(server)) for server in servers.values()]
        sources = [
            Source(server, letter, number, seed, cases=not sinks)
            for number, (letter, server) in enumerate(servers.items())
        ]
        os.environ.update({password_variable(source): source.server.password for source in sources})
        target = stack.enter_context(running(TARGET)) if sinks else None
        task = SoakTask(folder, sources[0].server, "", sources=sources, proxies=proxies, target=target)
        task.syncer = {"safe-mode": guard is not None and SABOTAGE[guard].safe_mode}
        runner = Runner(task)
        stack.callback(runner.end)
        operations = Operations(task)
        faults, judges = Faults(spark, runner, sources, proxies), Judges(spark, task, operations)
        soak = Soak(sources, faults, operations, judges, ShardChanges(seed))
        if guard is not None:
            soak.settle_seconds, judges.equal_seconds = SABOTAGED_SECONDS
        yield soak


def play(soak: Soak, number: int, guard: Guard | None) -> str:
    """One phase: a line about it. With a sabotage the first phase loads the tables, and the second has the guard."""
    if guard is None:
        return soak.phase(number)
    sabotage = SABOTAGE[guard]
    if number in (2, 3) and (guards := [*sabotage.besides, *([guard] if number > 2 else [])]):
        os.environ.update(sabotaged_environment(guards))
        soak.faults.end_runner()
    return soak.phase(number, Scene.QUIET if number == 1 else sabotage.scene, sabotage.only)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    guards = [guard.value for guard in Guard]
    parser.add_argument("--sabotage", choices=guards, help="phases that must fail once the guard is switched off")
    chosen = parser.parse_args()
    print(f"soak: {chosen.minutes:g} minutes, SEED={chosen.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="dmdelta-soak-"))
    guard = Guard(chosen.sabotage) if chosen.sabotage else None
    with opened(chosen.seed, folder, guard) as soak:
        whole = guard is None and chosen.minutes >= WHOLE_MINUTES
        began, number, failed = time.monotonic(), 0, 0
        try:
            while not is_over(soak, time.monotonic() - began, 60 * chosen.minutes, whole=whole):
                number += 1
                print(play(soak, number, guard), flush=True)
        except Exception as error:  # noqa: BLE001 - any error is reported with the seed
            failed = 1
            print(f"{error}\nsoak: phase {number} of SEED={chosen.seed} failed; everything is in {folder}", flush=True)
        seconds = time.monotonic() - began
        if not failed and whole and (lacks := shortcomings(soak, seconds)):
            failed = 1
            print(f"soak: SEED={chosen.seed} does not cover everything: {', '.join(lacks)}", flush=True)
        found = figures(soak, passed=number - failed, failed=failed, seconds=seconds)
    print("\n".join(found["notes"]), flush=True)
    if failed:
        print(f"repeat: {_command(chosen)}", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found) + "\n")
    return failed


def _command(chosen: argparse.Namespace) -> str:
    more = ["--sabotage", chosen.sabotage] if chosen.sabotage else []
    command = [sys.executable, "-m", "tests.soak", "--minutes", f"{chosen.minutes:g}", "--seed", str(chosen.seed)]
    return shlex.join([*command, *more])


if __name__ == "__main__":
    sys.exit(main())
