"""The applying loop of one source: ranges of its log go to the silver tables."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dmdelta.checkpoint import FlushReason
from dmdelta.engine.apply.scheduler import TableScheduler, Threads
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.logging import get_logger
from dmdelta.silver.apply.silver_context import SilverContext

log = get_logger(__name__)
WAIT_SECONDS = 0.5
IDLE_SECONDS = 30.0
"""After so long without a new range, a table that the log did not mention is as the source's catalog describes it."""
RANGE_BYTES = 256 << 20
"""One range's share of the log: applying is cheaper in bulk, stopping is quicker in pieces."""


@dataclass(slots=True)
class ApplyingLoop:
    """Takes ranges from a queue and has the scheduler apply them.

    Attributes:
        request_flush: asks the flusher to write the checkpoint soon.
        applied_log: gets the ranges that are applied; None if nobody takes them.
    """

    scheduler: TableScheduler
    landed_log: RangeQueue
    request_flush: Callable[[FlushReason], None]
    applied_log: RangeQueue | None = None

    @property
    def side(self) -> SilverContext:
        """Where the source's rows go."""
        return self.scheduler.side

    def run(self, stop: StopRequest) -> None:
        """Apply until the stop comes, or until landing is done and the queue is empty. Ends at a range's end."""
        busy = time.monotonic()
        with self.scheduler.threads() as threads:
            while not stop.requested:
                self.scheduler.check_late()
                if self._apply_next(threads, stop):
                    busy = time.monotonic()
                    continue
                finished = self.landed_log.finished
                if finished or time.monotonic() > busy + IDLE_SECONDS:
                    self.side.shards.heard_all(self.side.source_id)
                if finished:
                    self.scheduler.check_late(wait_for_all=True)
                    return

    def _apply_next(self, threads: Threads, stop: StopRequest) -> bool:
        """Apply the next range; False if none came in time."""
        landed = self.landed_log.take(RANGE_BYTES, WAIT_SECONDS)
        if landed is None:
            return False
        while (found := self.scheduler.apply_range(threads, landed, stop)) is None:
            if stop.wait(WAIT_SECONDS):
                return True
            self.scheduler.check_late()
        if any(table.ddl for table in found):
            self.request_flush(FlushReason.DDL)
        log.info("range applied", source=self.side.source_id, end=str(landed.end), tables=len(found))
        if self.applied_log is not None:
            self.applied_log.append(landed)
        return True
