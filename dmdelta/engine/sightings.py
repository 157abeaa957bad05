"""How many seconds a stage is behind its source, from when the source's end was seen where."""

import threading
from collections import deque

from dmdelta.model.position import Position

MOST = 10_000
"""Of sightings that some stage has not reached; beyond, every other one is forgotten."""


class Sightings:
    """Where a source's log ended at which moments. May be used from any thread.

    No row has to be asked for its time: a stage is late by as long as there is log that it has not reached. That is
    exact to the interval of looking, and 0 for a stage that has all there is, however long ago that was written.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[Position, float]] = deque()
        self._lock = threading.Lock()

    def saw(self, end: Position, at: float) -> None:
        """The log ends at `end` at a moment (seconds of one clock); an end that was seen before tells nothing new."""
        with self._lock:
            if self._seen and end <= self._seen[-1][0]:
                return
            if len(self._seen) >= MOST:
                self._seen = deque(list(self._seen)[::2])
            self._seen.append((end, at))

    def forget(self, reached: Position) -> None:
        """Every stage is at `reached`, or beyond."""
        with self._lock:
            while self._seen and self._seen[0][0] <= reached:
                self._seen.popleft()

    def lag(self, reached: Position | None, now: float) -> float:
        """Seconds since there is log that a stage has not reached; None: it has not begun."""
        with self._lock:
            return next((max(0.0, now - at) for end, at in self._seen if reached is None or end > reached), 0.0)
