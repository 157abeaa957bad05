"""The apply loop of one source: hands the ranges of its log to the tables, and reports those that all have applied."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dmdelta.checkpoint import FlushReason
from dmdelta.engine.apply.scheduler import RANGE_BYTES, TableScheduler
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.logging import get_logger
from dmdelta.sharding import IDLE_SECONDS
from dmdelta.silver.apply.silver_context import SilverContext

log = get_logger(__name__)
WAIT_SECONDS = 0.5


@dataclass(slots=True)
class ApplyingLoop:
    """Takes ranges from a queue and hands them to the scheduler, which applies them meanwhile.

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
        """Apply ranges until a stop is requested, or until landing has finished and every table has applied everything.

        Returns at the end of a turn of each table; after a stop, if time allows, with all tables at the end of bronze.

        Raises:
            DmdeltaError: as `apply_group`, after the running turns have finished.
        """
        busy = time.monotonic()
        with self.scheduler.writing(stop):
            while not stop.requested:
                self.scheduler.check()
                self._report_applied()
                if self.context.shards.mode is not None:
                    self.scheduler.resume_released()
                finished = self.landed_ranges.finished
                if not self.scheduler.is_idle:
                    busy = time.monotonic()
                elif finished or time.monotonic() > busy + IDLE_SECONDS:
                    self.context.shards.assume_catalog_schemas(self.context.source_id)
                    if finished and self._is_at_rest(stop):
                        break
                if self._hand_over_next():
                    busy = time.monotonic()
            self._drain(stop)
        self.scheduler.check()
        self._report_applied()

    def _drain(self, stop: StopRequest) -> None:
        """Let all tables reach the end of what has landed, as long as the stop waits for it."""
        while stop.drains and not (self.landed_ranges.finished and self.scheduler.is_idle):
            self.scheduler.check()
            self._report_applied()
            self._hand_over_next()

    def _hand_over_next(self) -> bool:
        """Hand over the next range; False if none arrives in time, or the tables are too far behind."""
        if not self.scheduler.has_room or self.landed_ranges.finished:
            self.scheduler.wait(WAIT_SECONDS)
            return False
        landed = self.landed_ranges.take(RANGE_BYTES, WAIT_SECONDS)
        if landed is not None:
            self.scheduler.hand_over(landed)
        return landed is not None

    def _is_at_rest(self, stop: StopRequest) -> bool:
        """Whether no shard of this source waits for another source that may still continue."""
        shards = self.context.shards
        if shards.mode is None:
            return True
        return shards.comes_to_rest(lambda: stop.wait(WAIT_SECONDS))

    def _report_applied(self) -> None:
        """Pass on the ranges that all tables have applied.

        Called at least every `WAIT_SECONDS`. Whatever is kept for tables that have not applied it yet can be released
        here, up to the global point (`scheduler.tables.points.reached`), which waits for held tables, too.
        """
        for applied in self.scheduler.take_applied():
            source_id, landed = self.context.source_id, applied.landed
            self.scheduler.tables.counters.spent(source_id, "apply", applied.seconds)
            if applied.ddl:
                self.request_flush(FlushReason.DDL)
            log.info("range applied", source=source_id, end=str(landed.end), tables=applied.tables)
            if self.applied_ranges is not None:
                self.applied_ranges.append(landed)
        self.context.memory.release(self.scheduler.tables.points.reached)
