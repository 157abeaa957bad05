"""What the sink's asynchronous checkpoint gains, by where the target is: beside the sink, on its own core, far away.

    make bench-sink-flush                               # every place; writes SINK_FLUSH.md
    python -m benchmarks.sink_flush --places 5ms,20ms   # some places: the page keeps the lines of the others

In each place the flushes take turns: asynchronous, synchronous, synchronous, asynchronous. The profile of a synchronous
pass: seconds in which the sink's thread waits for the workers, writes the checkpoint, and reads the slice after it,
which nothing reads ahead.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks.cpu import children
from benchmarks.delayed import delayed
from benchmarks.page import measured_by, write_page
from benchmarks.sink import INTERVAL, one_pass, target_server
from benchmarks.workload import write_sysbench
from dmdelta.lakehouse.session import open_session
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.sink import Sink
from tests.support.servers import Server, running
from tests.support.sinking import Sinking, target_of

PAGE = "SINK_FLUSH.md"
PLACES = ("beside", "own core", "1ms", "5ms", "20ms")
HEAD = (
    "| target | changes | asynchronous: s | synchronous: s | asynchronous: faster by "
    "| flushes | waits: s | writes: s | rest: s |"
    "\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


@dataclass(slots=True)
class FlushProfile:
    """Of one pass: the flushes, and the seconds that the sink's thread spends in each part of them."""

    flushes: int = 0
    flushing: float = 0.0
    draining: float = 0.0
    writing: float = 0.0


@dataclass(slots=True)
class Passes:
    """Seconds of the passes in one place, and the profiles of the synchronous ones."""

    asynchronous: list[float] = field(default_factory=list)
    synchronous: list[float] = field(default_factory=list)
    profiles: list[FlushProfile] = field(default_factory=list)


@contextmanager
def profiled() -> Iterator[FlushProfile]:
    """Count what the sink's thread does in the synchronous flushes of a `with` block."""
    found, drain, write = FlushProfile(), Dispatcher.drain, Flusher.flush_ready
    flush = Sink._flush  # noqa: SLF001 - what is measured
    inside = [False]

    def timed(act: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return act(*arguments, **named)
            finally:
                if inside[0]:
                    setattr(found, name, getattr(found, name) + time.perf_counter() - began)

        return run

    def whole(sink: Sink) -> None:
        inside[0], found.flushes, began = True, found.flushes + 1, time.perf_counter()
        flush(sink)
        inside[0], found.flushing = False, found.flushing + time.perf_counter() - began

    with (
        patch.object(Sink, "_flush", whole),
        patch.object(Dispatcher, "drain", timed(drain, "draining")),
        patch.object(Flusher, "flush_ready", timed(write, "writing")),
    ):
        yield found


def measure(sinking: Sinking, target: Server, database: str, place: str, rounds: int) -> str:
    """The line of one place."""
    settings, found = replace(sinking.settings, server=target_of(target)), Passes()
    with delayed(target.port, float(place.removesuffix("ms"))) if place.endswith("ms") else nullcontext(None) as port:
        if port is not None:
            settings = replace(settings, server=replace(settings.server, port=port))
        for number in range(2 * rounds):
            synchronous = number % 4 in (1, 2)
            with profiled() as profile:
                one = one_pass(sinking, target, database, replace(settings, synchronous=synchronous))
            (found.synchronous if synchronous else found.asynchronous).append(one.seconds)
            found.profiles += [profile] if synchronous else []
    return found_line(place, found, sinking)


def found_line(place: str, found: Passes, sinking: Sinking) -> str:
    fast, slow = median(found.asynchronous), median(found.synchronous)
    flushes, draining, writing = (
        median(getattr(one, name) for one in found.profiles) for name in ("flushes", "draining", "writing")
    )
    changes = sinking.pipeline.bronze("s1").where("op IN ('insert', 'update')").count()
    names = {"beside": "beside the sink, two cores shared", "own core": "on a core of its own, the sink on the other"}
    what = names.get(place, f"{place.removesuffix('ms')} ms away (round trip)")
    return (
        f"| {what} | {changes:,} | {fast:.2f} | {slow:.2f} | {100 * (slow / fast - 1):.0f} % | {flushes:.0f} | "
        f"{draining:.2f} | {writing:.2f} | {slow - fast - draining - writing:.2f} |"
    )


@contextmanager
def own_core(target: Server) -> Iterator[None]:
    """For the duration of a `with`: the server has the last core alone, this process and its JVM the others."""
    (jvm,), count = children("java"), os.cpu_count() or 1
    others = ",".join(map(str, range(count - 1)))
    for pid, cores in ((target.pid, str(count - 1)), (os.getpid(), others), (jvm, others)):
        _pin(pid, cores)
    try:
        yield
    finally:
        for pid in (target.pid, os.getpid(), jvm):
            _pin(pid, f"0-{count - 1}")


def _pin(pid: int, cores: str) -> None:
    subprocess.run(["taskset", "--all-tasks", "--cpu-list", "--pid", cores, str(pid)], check=True, capture_output=True)


def kept(lines: list[str]) -> list[str]:
    """The table with these lines, and the page's lines of other places, in the page's order."""
    page = Path(__file__).with_name(PAGE)
    old = [line for line in page.read_text().splitlines() if line.startswith("| ")][2:] if page.exists() else []
    by_place = {line.split(" | ")[0]: line for line in [*old, *lines]}
    return [HEAD, *by_place.values()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000, help="rows inserted, and rows updated")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=500, help="rows a transaction")
    parser.add_argument("--rounds", type=int, default=2, help="passes of each flush in each place, an even number")
    parser.add_argument("--places", default=",".join(PLACES), help="some of: beside, own core, and 5ms")
    chosen = parser.parse_args()
    settings = SinkSettings(None, workers=chosen.workers, batch=chosen.batch, flush_interval=INTERVAL)  # type: ignore[arg-type]
    spark, lines = open_session("dmdelta sink benchmark"), list[str]()
    with tempfile.TemporaryDirectory(prefix="dmdelta-bench-") as folder:
        with running("mysql80", max_binlog_size="1G") as source:
            database = write_sysbench(source, chosen.rows)
            sinking = Sinking(spark, Path(folder), source, [database], settings)
            sinking.land()
        with target_server("mariadb") as target:
            assert isinstance(target, Server)
            one_pass(sinking, target, database, replace(settings, server=target_of(target)))
            for place in chosen.places.split(","):
                with own_core(target) if place == "own core" else nullcontext():
                    sinking.settings = settings
                    lines.append(measure(sinking, target, database, place, chosen.rounds))
                write_page(PAGE, "The sink's asynchronous flush", setting(chosen), kept(lines))


def setting(chosen: argparse.Namespace) -> str:
    return (
        f"{measured_by('python -m benchmarks.sink_flush')}; MariaDB, {chosen.workers} workers,\n"
        f"{chosen.batch} rows a transaction, checkpoint every {INTERVAL:g} s. Medians of {chosen.rounds} passes.\n"
        "A proxy in a process of its own makes the distance. Of a synchronous pass: its flushes, how long the sink's\n"
        "thread waits for the workers, and how long it writes. The rest of the difference is mostly the reading of\n"
        f"the slice after each flush. The load average was {os.getloadavg()[1]:.0f}."
    )


if __name__ == "__main__":
    main()
