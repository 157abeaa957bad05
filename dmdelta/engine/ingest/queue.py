"""The queue between landing and applying: batches that are in bronze and wait to be applied."""

import threading
from collections import deque

from dmdelta.bronze.progress import LandedRange


class RangeQueue:
    """A queue of landed batches of one source. Landing appends, applying takes; a follower gets the same batches."""

    def __init__(self) -> None:
        self._waiting: deque[LandedRange] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._abandoned = False
        self._follower: RangeQueue | None = None

    def follow_with(self, follower: "RangeQueue") -> None:
        """Forward everything that is appended from now on to another queue, too."""
        self._follower = follower

    @property
    def finished(self) -> bool:
        """The queue is empty and closed."""
        with self._changed:
            return self._closed and not self._waiting

    @property
    def closed(self) -> bool:
        """Nothing more is appended."""
        with self._changed:
            return self._closed

    def abandon(self) -> None:
        """Nothing takes any more: forget what waits, and what is appended from now on."""
        with self._changed:
            self._abandoned = True
            self._waiting.clear()

    def append(self, landed: LandedRange) -> None:
        with self._changed:
            if not self._abandoned:
                self._waiting.append(landed)
            self._changed.notify_all()
        if self._follower is not None:
            self._follower.append(landed)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._follower is not None:
            self._follower.close()

    def take(self, max_bytes: int, timeout: float) -> LandedRange | None:
        """Join waiting batches into one range of about `max_bytes`; None after a timeout (seconds)."""
        with self._changed:
            if not self._waiting and not self._closed:
                self._changed.wait(timeout)
            if not self._waiting:
                return None
            joined = self._waiting.popleft()
            while self._waiting and can_join(joined, self._waiting[0], max_bytes):
                joined = joined.join(self._waiting.popleft())
            return joined


def can_join(landed: LandedRange, following: LandedRange, max_bytes: int) -> bool:
    """Whether two ranges, with or without log between them, may be applied as one of at most `max_bytes`.

    Not across an epoch: a snapshot's rows are new, the log after it may already be in silver.
    """
    if landed.end.epoch != following.end.epoch:
        return False
    return max(landed.size + following.size, landed.join(following).size) <= max_bytes
