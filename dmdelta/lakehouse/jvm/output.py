"""The output of a local JVM: it reaches this process's stderr line by line, without two kinds of noise.

Omitted are the launcher's warning about a module that Spark requires, and Spark's reports of jobs that dmdelta has
cancelled (`cancelling`). Every other line passes unchanged. `log4j2.properties` leaves out what may quote row values.
"""

import atexit
import os
import re
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dmdelta.logging import get_logger

log = get_logger(__name__)
CANCEL_SECONDS = 15.0
"""How long after a cancellation Spark may still report the cancelled jobs."""
HOLD_SECONDS = 0.3
"""A report is complete, and an unfinished line is shown, once no output follows it for this long."""
DRAIN_SECONDS = 1.0
"""The longest wait for output at the end of this process. Later output of the JVM, which then ends, is not shown."""
MOST_LINES = 5_000
"""The longest report that is held."""
_NOISE = re.compile(r"WARNING: Using incubator modules: [\w., ]+$")
_CONTROL = re.compile(rb"[\r\x1b]")
"""What a progress display writes, which must not wait for the end of the line."""
_REPORT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:ERROR|FATAL) (?P<logger>[\w$.]+): ")
"""The first line of an error in the pattern of `log4j2.properties`."""
_EXCEPTION = re.compile(r"(?:Caused by: )?(?:[\w$]+\.)+[\w$]+(?:: |$)")
_CONTINUES = re.compile(rf"\s|$|Suppressed: |Driver stacktrace:|{_EXCEPTION.pattern}")
_CANCELLED = re.compile(
    r"SPARK_JOB_CANCELLED|Job \d+ (?:was )?cancelled|Stage (?:\d+ )?(?:was )?cancelled|SparkContext was shut down"
    r"|TaskKilled|InterruptedException|ClosedByInterruptException|InterruptedIOException"
)
_ABORTED = re.compile(r"FileFormatWriter: Job \S+ aborted\.?$")
"""A report without a stack trace that accompanies one with a stack trace."""


class _Cancellations:
    """When dmdelta last cancelled jobs."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def note(self) -> None:
        self._last = time.monotonic()

    @property
    def recent(self) -> bool:
        return time.monotonic() - self._last < CANCEL_SECONDS


_CANCELLATIONS = _Cancellations()


def cancelling() -> None:
    """State that the caller now cancels jobs: Spark's reports of cancelled jobs are omitted for a while."""
    _CANCELLATIONS.note()


def is_cancellation(report: Sequence[str]) -> bool:
    """Whether the root cause of an error that Spark reports is the cancellation of a job.

    Args:
        report: the lines of the message and its stack trace.
    """
    exceptions = [line for line in report[1:] if _EXCEPTION.match(line)]
    if not exceptions:
        return _ABORTED.search(report[0]) is not None
    causes = [line for line in exceptions if line.startswith("Caused by: ")]
    return _CANCELLED.search(causes[-1] if causes else exceptions[0]) is not None


@dataclass(slots=True)
class LineFilter:
    """Decides which lines are shown. Not thread-safe.

    Attributes:
        is_cancelling: whether jobs were cancelled recently: only then are reports held until they are complete.
    """

    is_cancelling: Callable[[], bool]
    _report: list[str] = field(default_factory=list)

    @property
    def is_holding(self) -> bool:
        """Whether lines of an incomplete report are held."""
        return bool(self._report)

    def take(self, line: str) -> list[str]:
        """The lines to show after this line has been read."""
        if self._report and len(self._report) < MOST_LINES and _CONTINUES.match(line):
            self._report.append(line)
            return []
        shown = self.settle()
        cut = _NOISE.sub("", line)
        if cut != line:
            return [*shown, cut] if cut else shown
        if _REPORT.match(line) and self.is_cancelling():
            self._report = [line]
            return shown
        return [*shown, line]

    def settle(self) -> list[str]:
        """The lines to show of the report that is held, which is complete."""
        report, self._report = self._report, []
        if report and is_cancellation(report):
            found = _REPORT.match(report[0])
            log.info("report of a cancelled job omitted", logger=found["logger"] if found else "", lines=len(report))
            return []
        return report


class _Output:
    """Reads a pipe in a thread and writes what the filter shows."""

    def __init__(self, read: int, target: int) -> None:
        self._read = read
        self._target = target
        self._writing = threading.Lock()
        self._lines = LineFilter(lambda: _CANCELLATIONS.recent)
        self._thread = threading.Thread(target=self._forward, name="jvm-output", daemon=True)
        self._thread.start()
        atexit.register(self.drain)

    def follow_stderr(self) -> None:
        """Write to this process's stderr from now on, wherever that leads."""
        with self._writing:
            os.close(self._target)
            self._target = 2

    def drain(self) -> None:
        """Wait until what has been written is shown, for at most DRAIN_SECONDS."""
        deadline = time.monotonic() + DRAIN_SECONDS
        with suppress(OSError, ValueError):  # the thread has closed the pipe
            while self._thread.is_alive() and time.monotonic() < deadline:
                if not self._lines.is_holding and not select.select([self._read], [], [], 0)[0]:
                    self._thread.join(0.05)
                    return
                time.sleep(0.02)

    def _forward(self) -> None:
        rest = b""
        while True:
            if (rest or self._lines.is_holding) and not select.select([self._read], [], [], HOLD_SECONDS)[0]:
                self._show(self._lines.settle())
                self._write(rest)
                rest = b""
                continue
            data = os.read(self._read, 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._show(self._lines.take(line.decode("utf-8", "surrogateescape")))
            if _CONTROL.search(rest):
                self._write(rest)
                rest = b""
            if not data:
                break
        self._show(self._lines.settle())
        self._write(rest)
        os.close(self._read)
        atexit.unregister(self.drain)

    def _show(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._write(f"{line}\n".encode("utf-8", "surrogateescape"))

    def _write(self, data: bytes) -> None:
        with self._writing, suppress(OSError):  # the terminal is gone; the JVM must not block
            while data:
                try:
                    data = data[os.write(self._target, data) :]
                except BlockingIOError:
                    select.select([], [self._target], [])


@contextmanager
def filtered_output() -> Iterator[None]:
    """Redirect what a process started in this block writes, at any time, to this process's stderr, filtered.

    Its stdout as well: VACUUM prints, and stdout may be JSON. If the block raises, its output has been shown.
    """
    read, write = os.pipe()
    output = _Output(read, os.dup(2))
    try:
        with _leading_to(write):
            yield
    except BaseException:
        output.drain()
        raise
    finally:
        output.follow_stderr()


@contextmanager
def inherited_output() -> Iterator[None]:
    """Redirect what a process started in this block writes to this process's stderr, which it keeps open to its end."""
    with _leading_to(os.dup(2)):
        yield


@contextmanager
def _leading_to(target: int) -> Iterator[None]:
    """Let stdout and stderr lead to `target` during the block, which this closes."""
    sys.stdout.flush()
    sys.stderr.flush()
    originals = {number: os.dup(number) for number in (1, 2)}
    for number in originals:
        os.dup2(target, number)
    os.close(target)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in originals.items():
            os.dup2(original, number)
            os.close(original)
