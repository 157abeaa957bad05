"""Requests to stop or pause a task: from a signal, another process, a failed stage, or at its end."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dmdelta.errors import DmdeltaError, as_ours
from dmdelta.logging import get_logger

log = get_logger(__name__)
SECOND_SIGNAL = "a second signal ends the process immediately; no data is lost"


class StopRequest:
    """Checked by every loop. A pause is a stop that can be resumed; a stop and a failure cannot.

    Attributes:
        failure: the first failure, which the run raises.
        signalled: a signal has requested the stop.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._going = threading.Event()
        self._going.set()
        self._lock = threading.RLock()
        self._paused = False
        self._drains_until = float("-inf")
        self.failure: DmdeltaError | None = None
        self.signalled = False

    @property
    def requested(self) -> bool:
        """The loops must end, temporarily or permanently."""
        return self._stopping.is_set()

    @property
    def is_pause(self) -> bool:
        """They must end only temporarily."""
        return self._paused

    @property
    def drains(self) -> bool:
        """Whether the loops may still work, after a request, so that all tables and the sink end at one position."""
        return self.failure is None and time.monotonic() < self._drains_until

    def request(self, drain: float = 0.0) -> None:
        """Stop; `drain`: the seconds for which `drains` is true, unless something fails."""
        with self._lock:
            self._drains_until = time.monotonic() + drain
            self._paused = False
            self._stopping.set()
            self._going.set()

    def pause(self) -> None:
        """Stop until `resume`; no effect after a stop."""
        with self._lock:
            if not self.requested:
                self._paused = True
                self._going.clear()
                self._stopping.set()

    def resume(self) -> None:
        """End a pause; no effect after a stop."""
        with self._lock:
            if self._paused:
                self._paused = False
                self._stopping.clear()
                self._going.set()

    def fail(self, error: BaseException) -> None:
        """Stop, because the calling thread has failed."""
        with self._lock:
            self.failure = self.failure or as_ours(error, threading.current_thread().name)
            self.request()

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake up immediately when a stop is requested. True if it is."""
        return self._stopping.wait(seconds)

    def wait_for_resume(self) -> bool:
        """Wait for the end of a pause; False if it ends with a stop."""
        self._going.wait()
        return not self.requested


@contextmanager
def stopping_on_signals(stop: StopRequest) -> Iterator[None]:
    """SIGTERM and SIGINT request a stop at a transaction boundary; a second one has the effect that it had before."""
    received = threading.Event()

    def on_signal(signum: int, _frame: FrameType | None) -> None:
        if stop.signalled:
            signal.signal(signum, previous[signal.Signals(signum)])
            signal.raise_signal(signum)
            return
        stop.signalled = True
        received.set()

    def obey() -> None:
        received.wait()
        if stop.signalled:
            stop.request()
            log.info("stop requested by a signal", note=SECOND_SIGNAL)

    if threading.current_thread() is not threading.main_thread():
        yield  # a notebook or a test runs it in a thread, and stops it through its StopRequest
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in previous:
        signal.signal(number, on_signal)
    # Not in the handler: it may interrupt its thread within a log line, or while it holds the lock of an event.
    threading.Thread(target=obey, name="signals", daemon=True).start()
    try:
        yield
    finally:
        received.set()
        for number, action in previous.items():
            signal.signal(number, action)


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block with SystemExit, so that its `finally` clauses run; only the first one does.

    In the main thread only. Handlers of the program, and ignored signals (`nohup`), remain in effect.

    Raises:
        SystemExit: with 128 and the number of the signal, as shells report a process that a signal ended.
    """
    received: list[int] = []

    def on_signal(signum: int, _frame: FrameType | None) -> None:
        received.append(signum)
        if len(received) == 1:  # `timeout` and the end of a terminal send two: the second must not end a `finally`
            raise SystemExit(_ended_by(signum))

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    replaced = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
    if received:  # Python drops exceptions in a finalizer
        raise SystemExit(_ended_by(received[0]))


def _ended_by(signum: int) -> int:
    return 128 + signum
