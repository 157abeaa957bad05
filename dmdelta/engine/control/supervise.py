"""Supervises a loop beside the pipeline: retries it after transient failures; any other failure stops it alone."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.model.retry import Retry

AGAIN = Retry(first=1.0, longest=60.0)
WELL_SECONDS = 600.0
"""A loop that ran this long before it failed is retried immediately."""


def supervise(follow: Callable[[], None], retry_if: Callable[[Exception], bool], stop: StopRequest) -> None:
    """Run `follow` until it is done or the stop is requested; retry after each failure for which `retry_if` is true."""
    failures = 0
    while not stop.requested:
        began = time.monotonic()
        try:
            follow()
        except Exception as error:  # noqa: BLE001 - it is reported, and the pipeline continues
            if not retry_if(error):
                return
            failures = 1 if time.monotonic() - began > WELL_SECONDS else failures + 1
            stop.wait(AGAIN.delay(failures))
        else:
            return


@dataclass(slots=True)
class SupervisedLoop(ABC):
    """A loop beside the pipeline, in a thread of its own."""

    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self, name: str, stop: StopRequest) -> None:
        """Start the thread, which ends when the loop is done, or after the stop is requested."""
        self._thread = threading.Thread(target=self._run, args=(stop,), name=name, daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        return self._thread is not None and not self._thread.is_alive()

    def join(self, seconds: float) -> bool:
        """Wait for the end after a stop; False after a timeout."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.finished

    def _run(self, stop: StopRequest) -> None:
        supervise(lambda: self._follow(stop), lambda error: self._should_retry(error, stop), stop)

    @abstractmethod
    def _follow(self, stop: StopRequest) -> None:
        """The loop."""

    @abstractmethod
    def _should_retry(self, error: Exception, stop: StopRequest) -> bool:
        """Whether the loop starts again after an error."""
