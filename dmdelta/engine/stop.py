"""Asking a task to stop, from a signal, from a failed stage or because all is done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Set once, seen by every loop. The first failure is kept: it is what the run raises."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        self._event.set()

    def fail(self, error: BaseException) -> None:
        with self._lock:
            self.failure = self.failure or error
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake at once when the stop comes. True if it has come."""
        return self._event.wait(seconds)


@contextmanager
def stopping_on_signals(stop: StopRequest) -> Iterator[None]:
    """SIGTERM and SIGINT ask for a stop at a transaction boundary; a second one is Python's own again."""

    def on_signal(signum: int, _frame: FrameType | None) -> None:
        stop.request()
        signal.signal(signum, previous[signal.Signals(signum)])

    if threading.current_thread() is not threading.main_thread():
        yield  # a notebook or a test drives the run from a thread; it stops it by its StopRequest
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in previous:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, action in previous.items():
            signal.signal(number, action)
