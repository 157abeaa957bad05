"""The apply loop of one source: applies ranges of its log to the silver tables."""

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
"""After this long without a range, a shard that the log has not mentioned has the schema of the source's catalog."""
RANGE_BYTES = 256 << 20
"""Maximum bytes of log in one range: large ranges apply more cheaply, small ones stop sooner."""


@dataclass(slots=True)
class ApplyingLoop:
    """Takes ranges from a queue and has the scheduler apply them.

    Attributes:
        request_flush: asks the flusher to write the checkpoint soon.
        applied_ranges: receives the applied ranges; None if there is no consumer.
    """

    scheduler: TableScheduler
    landed_ranges: RangeQueue
    request_flush: Callable[[FlushReason], None]
    applied_ranges: RangeQueue | None = None

    @property
    def context(self) -> SilverContext:
        """The silver tables of the source."""
        return self.scheduler.context

    def run(self, stop: StopRequest) -> None:
        """Apply ranges until a stop is requested, or until landing has finished and the queue is empty.

        Returns at the end of a range.
        """
        busy = time.monotonic()
        with self.scheduler.threads() as threads:
            while not stop.requested:
                self.scheduler.check_late()
                if self._apply_next(threads, stop):
                    busy = time.monotonic()
                    continue
                finished = self.landed_ranges.finished
                if finished or time.monotonic() > busy + IDLE_SECONDS:
                    self.context.shards.assume_catalog_schemas(self.context.source_id)
                if finished:
                    self.scheduler.check_late(wait_for_all=True)
                    return

    def _apply_next(self, threads: Threads, stop: StopRequest) -> bool:
        """Apply the next range; False if none arrives in time."""
        landed = self.landed_ranges.take(RANGE_BYTES, WAIT_SECONDS)
        if landed is None:
            return False
        while (tables := self.scheduler.apply_range(threads, landed, stop)) is None:
            if stop.wait(WAIT_SECONDS):
                return True
            self.scheduler.check_late()
        self.context.memory.release(self.scheduler.tables.points.reached)
        if any(table.ddl for table in tables):
            self.request_flush(FlushReason.DDL)
        log.info("range applied", source=self.context.source_id, end=str(landed.end), tables=len(tables))
        if self.applied_ranges is not None:
            self.applied_ranges.append(landed)
        return True
