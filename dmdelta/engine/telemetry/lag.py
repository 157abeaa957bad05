"""Measures the lag of a stage behind its source in seconds, from the times at which the source's end was observed."""

import threading
from collections import deque

from dmdelta.model.position import Position

MOST = 10_000
"""Maximum number of observations that some stage has not reached; beyond it every other one is dropped."""


class LagTracker:
    """The observed ends of a source's log, with their times. Thread-safe.

    No row timestamps are needed: the lag of a stage is the time since there is log that it has not reached. It is exact
    to the polling interval, and 0 for a stage that has reached the end, however long ago that was written.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[Position, float]] = deque()
        self._lock = threading.Lock()

    def saw(self, end: Position, at: float) -> None:
        """Observe that the log ends at `end` at the time `at` (seconds of one clock); a known end is ignored."""
        with self._lock:
            if self._seen and end <= self._seen[-1][0]:
                return
            if len(self._seen) >= MOST:
                self._seen = deque(list(self._seen)[::2])
            self._seen.append((end, at))

    def forget(self, reached: Position) -> None:
        """Forget observations up to `reached`: every stage has reached it."""
        with self._lock:
            while self._seen and self._seen[0][0] <= reached:
                self._seen.popleft()

    def lag(self, reached: Position | None, now: float) -> float:
        """Seconds since there is log that a stage has not reached; None: it has not started."""
        with self._lock:
            return next((max(0.0, now - at) for end, at in self._seen if reached is None or end > reached), 0.0)
