"""Purges causality in the background, by interval, so that the thread that dispatches changes does not wait for it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from dmdelta.logging import get_logger
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.plan.checkpoint import PushedPoint

log = get_logger(__name__)
PURGE_SECONDS = 1.0
"""Limits memory, and the generations that a new key is looked up in; each snapshot has one."""


@dataclass(slots=True)
class Purger:
    """
    Attributes:
        interval: seconds between two purges.
        failed: called if purging fails.
    """

    causality: Causality
    snapshots: Snapshots[PushedPoint | None]
    failed: Callable[[BaseException], None]
    interval: float = PURGE_SECONDS
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start purging in the background."""
        self._thread = threading.Thread(target=self._run, name="sink-purge", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the background thread."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ending.wait(self.interval):
                purge_executed(self.causality, self.snapshots)
        except BaseException as error:  # noqa: BLE001 - the sink raises it
            self.failed(error)


def purge_executed(causality: Causality, snapshots: Snapshots[PushedPoint | None]) -> int:
    """Forget the keys of the jobs before the newest ready snapshot; returns their number. Any thread may call it."""
    ready = snapshots.newest_ready
    purged = causality.purge(ready.id) if ready is not None else 0
    if ready is not None and purged:
        log.debug(
            "causality keys purged",
            source=snapshots.source_id,
            snapshot=ready.id,
            count=purged,
            left=causality.counts.size,
        )
    return purged
