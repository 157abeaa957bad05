"""The landing loop of one source: whatever the relay has cut goes to bronze, batch by batch."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed, LandingBatch, LandingSource, land, plan_landing, say_again
from dmdelta.engine.landed_log import LandedLog
from dmdelta.engine.pace import plan_pause
from dmdelta.engine.progress import Tally
from dmdelta.engine.relaying import Relaying
from dmdelta.engine.stop import StopRequest
from dmdelta.engine.tracking import StructureTracking
from dmdelta.errors import UnknownSchema
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.segments import list_segments
from dmdelta.source.purge import assert_whole, landed_segments, plan_purge, purge

log = get_logger(__name__)
POLL_SECONDS = 0.2
SAY_AGAIN = timedelta(days=7)
"""Delta forgets a table's commits after 30 days while others write to it; an idle source says in time where it is."""
PURGE_SECONDS = 60.0
"""How often segments are purged, at the most."""
GATHER_SECONDS = 2.0
"""How long a batch that grows is waited for: many small commits would cost more, here and in silver."""


@dataclass(slots=True)
class LandingLoop:
    """What the loop needs of the world around it.

    Attributes:
        tracking: which structures tables have where, for servers that send no column names.
        freshness: how old a change may be when it is in silver, in seconds: batches are gathered for so long.
        reached: where bronze ends; None before anything has landed.
        segments: what the relay folder held when it was last looked into, in the order of the log.
    """

    spark: SparkSession
    source: LandingSource
    relaying: Relaying
    tracking: StructureTracking
    landed_log: LandedLog
    tally: Tally
    freshness: float = 0.0
    reached: Position | None = None
    segments: Sequence[Segment] = ()
    _purged: float = -PURGE_SECONDS
    _begun: float = float("-inf")

    def run(self, landed: Landed | None, stop: StopRequest) -> None:
        """Land until the stop comes or the relay has ended and nothing is left."""
        self.reached = landed.end if landed else None
        said_at = (landed.at if landed else None) or datetime.now(timezone.utc)
        if landed is None:
            assert_whole(list_segments(self.relaying.folder, self.source.source_id))
        try:
            while not stop.requested:
                ended = self.relaying.has_ended()  # asked before listing: what it cut last is then in the list
                batch = self._next_batch(landed, stop, gather=not ended)
                if batch is not None:
                    self._begun = time.monotonic()
                    with self.tally.spending(self.source.source_id, "land"):
                        done = self._land(batch, landed, stop)
                    if done is None:
                        return
                    landed, self.reached, said_at = done, done.end, datetime.now(timezone.utc)
                    self.landed_log.append(landed)
                    self.tally.landed(self.source.source_id, str(landed.end))
                    self._purge(landed.end)
                elif landed is not None and datetime.now(timezone.utc) - said_at >= SAY_AGAIN:
                    landed, said_at = say_again(self.spark, self.source, landed), datetime.now(timezone.utc)
                elif ended:
                    return
                else:
                    stop.wait(POLL_SECONDS)
        finally:
            self.landed_log.close()

    def _next_batch(self, landed: Landed | None, stop: StopRequest, *, gather: bool) -> LandingBatch | None:
        """What waits to be landed, once it is time for it and it does not grow. None also when the stop comes."""
        until = time.monotonic() + GATHER_SECONDS
        while True:
            self.segments = list_segments(self.relaying.folder, self.source.source_id)
            batch = plan_landing(self.segments, landed)
            if batch is None or not gather or time.monotonic() >= (until if batch.grows else self._due):
                return batch
            if stop.wait(POLL_SECONDS):
                return None

    @property
    def _due(self) -> float:
        """When the next batch is to begin that does not fill."""
        source_id, tally = self.source.source_id, self.tally
        return self._begun + plan_pause(
            self.freshness, tally.recent(source_id, "land"), tally.recent(source_id, "apply")
        )

    def _purge(self, landed: Position) -> None:
        """Remove what need not be kept of what has landed. Here, because nobody else in this process lists segments."""
        if time.monotonic() - self._purged >= PURGE_SECONDS:
            self._purged = time.monotonic()
            free = shutil.disk_usage(self.relaying.folder).free
            old = landed_segments(self.segments, landed)
            purge(plan_purge(old, datetime.now(timezone.utc), free, self.relaying.purging))

    def interrupt(self) -> None:
        """Cancel the batch under way."""
        self.spark.interruptAll()

    def _land(self, batch: LandingBatch, landed: Landed | None, stop: StopRequest) -> Landed | None:
        """Bronze behind the batch; None if the stop came first."""
        structures = self.tracking.follow(batch, landed, stop)
        if structures is None:
            return None
        try:
            done = land(self.spark, self.source, batch, landed, structures)
        except UnknownSchema:
            # The log tells no names, and what is known does not fit: ask the source, once.
            found = self.tracking.look_again(batch, landed, stop)
            if found is None:
                if stop.requested:
                    return None
                raise
            done = land(self.spark, self.source, batch, landed, found)
        self.tracking.landed(batch)
        log.info("batch landed", source=self.source.source_id, batch=done.batch, end=str(done.end))
        return done
