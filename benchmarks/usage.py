"""Memory (PSS) and CPU time of a process and all its descendants, sampled while they run.

PSS divides each page by the number of processes that map it. The sum of RSS counts the pages that forked Python
workers share once per worker.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import linear_regression, median

from benchmarks.cpu import cpu_seconds, reaped_cpu_seconds
from tests.support.memory import command_of, descendants, pss

SAMPLE_SECONDS = 5.0
FLAT_SHARE = 0.1
"""Memory is flat if its trend over the evaluated time is less than this share of its median."""
PROGRAMS = ("java", "python", "dmdelta")
"""What a run consists of. A benchmark's own database server is not part of it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The processes at one time.

    Attributes:
        at: seconds of the monotonic clock.
        java, python: PSS in bytes.
        largest: PSS of the largest Python process, in bytes.
        java_cpu, python_cpu: CPU seconds so far; Python's include those of ended processes.
    """

    at: float
    java: int
    python: int
    largest: int
    java_cpu: float
    python_cpu: float

    @property
    def bytes(self) -> int:
        """PSS of all processes."""
        return self.java + self.python


def usage_below(root: int) -> Usage:
    """The Java and Python processes below `root`, itself included; zeros once all have ended."""
    memory, cpu, largest = {True: 0, False: 0}, {True: 0.0, False: 0.0}, 0
    for pid in descendants(root):
        with suppress(OSError):  # the process has ended meanwhile
            program = command_of(pid)
            if not program.startswith(PROGRAMS):
                continue
            java, used, spent, reaped = program.startswith("java"), pss(pid), cpu_seconds(pid), reaped_cpu_seconds(pid)
            memory[java] += used
            largest = max(largest, 0 if java else used)
            cpu[java] += spent
            cpu[False] += reaped
    return Usage(time.monotonic(), memory[True], memory[False], largest, cpu[True], cpu[False])


@contextmanager
def sampling(root: int, every: float = SAMPLE_SECONDS) -> Iterator[list[Usage]]:
    """The samples of the processes below `root`, taken in a thread during the block, the last one at its end."""
    samples: list[Usage] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(every):
            samples.append(usage_below(root))

    thread = threading.Thread(target=sample, daemon=True)
    samples.append(usage_below(root))
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()
        samples.append(usage_below(root))


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory (PSS, bytes) of all processes together, and of one Python process."""

    bytes: int
    largest: int


def peak_of(samples: Sequence[Usage]) -> Peak:
    """The largest values of samples; zeros without samples."""
    return Peak(max((one.bytes for one in samples), default=0), max((one.largest for one in samples), default=0))


@dataclass(frozen=True, slots=True)
class Memory:
    """PSS over some time, in bytes; `slope` in bytes per second; `seconds` is the evaluated time."""

    least: int
    median: float
    most: int
    slope: float
    seconds: float

    @property
    def flat(self) -> bool:
        """Whether it does not grow with time."""
        return self.slope * self.seconds < FLAT_SHARE * self.median

    def __str__(self) -> str:
        least, middle, most = (number / 1e9 for number in (self.least, self.median, self.most))
        verdict = "flat" if self.flat else "growing"
        return f"{least:.2f} / {middle:.2f} / {most:.2f} GB, {self.slope * 60 / 1e6:+.0f} MB per minute: {verdict}"


def memory_of(samples: Sequence[Usage]) -> Memory:
    """The memory of samples and its linear trend.

    Raises:
        ValueError: there are fewer than two samples.
    """
    if len(samples) < 2:
        raise ValueError("a trend needs two samples: measure for longer")
    sizes, times = [one.bytes for one in samples], [one.at for one in samples]
    slope = linear_regression(times, sizes).slope
    return Memory(min(sizes), median(sizes), max(sizes), slope, times[-1] - times[0])


def each_minute(samples: Sequence[Usage]) -> str:
    """The memory of the JVM and of the Python processes, in the last sample of each minute."""
    last = {int(one.at - samples[0].at) // 60: one for one in samples}

    def listed(sizes: Iterable[int]) -> str:
        return ", ".join(f"{size / 1e9:.2f}" for size in sizes)

    java, python = (one.java for one in last.values()), (one.python for one in last.values())
    return f"Memory (PSS) after each minute in GB, JVM: {listed(java)}; Python: {listed(python)}."


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds over some time (seconds)."""

    java: float
    python: float
    seconds: float

    def __str__(self) -> str:
        share = (self.java + self.python) / self.seconds
        return f"JVM {self.java:.0f} s, Python {self.python:.0f} s in {self.seconds:.0f} s: {share:.2f} cores"


def cpu_of(samples: Sequence[Usage]) -> Cpu:
    """The CPU time between the first and the last sample.

    Raises:
        ValueError: there are fewer than two samples.
    """
    if len(samples) < 2:
        raise ValueError("CPU time needs two samples: measure for longer")
    first, last = samples[0], samples[-1]
    return Cpu(last.java_cpu - first.java_cpu, last.python_cpu - first.python_cpu, last.at - first.at)
