"""The landing loop of one source: lands the relay's segments in bronze, batch by batch."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.driver_decoding import SMALL_BYTES
from dmdelta.bronze.landing import LandingBatch, land, plan_landing, write_keepalive
from dmdelta.bronze.progress import LandedRange
from dmdelta.changelog.context import SourceContext
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.ingest.repeated import RepeatedStructures
from dmdelta.engine.ingest.schema_tracker import StructureTracking
from dmdelta.engine.relay.supervisor import Relaying, known_of
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import UnknownSchema
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.segment import Segment
from dmdelta.segments import RelayListing
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.source.relay.purge import assert_whole, landed_segments, plan_purge, purge


def plan_pause(freshness: float, land: float, interval: float | None = None) -> float:
    """Seconds between the starts of two batches; 0: one directly after the other.

    An eighth of the target freshness is spent on waiting for a batch: the tables need the rest for their turns. Landing
    takes at most a quarter of the time, so that it leaves the cores to silver, particularly while both are cold. If the
    interval would then exceed the target freshness, landing takes up to half of the time.

    Args:
        freshness: maximum age of a change when it reaches silver, in seconds.
        land: recent duration of a batch, in seconds.
        interval: that of live reads, which see bronze, in seconds: landing takes up to half of the time; None: only
            silver is read.
    """
    if not freshness:
        return 0.0
    if interval is not None:
        return min(max(interval, 2 * land), plan_pause(freshness, land))
    return min(max(freshness / 8, 4 * land), max(freshness, 2 * land))


log = get_logger(__name__)
POLL_SECONDS = 0.2
KEEPALIVE_INTERVAL = timedelta(days=7)
"""Delta forgets a table's commits after 30 days while others write to it: an idle source writes a keepalive before.

Under a local root maintenance forgets them within hours, and repeats all positions before."""
PURGE_SECONDS = 60.0
"""Minimum interval between two purges of segments."""
GATHER_SECONDS = 2.0
"""How long a growing batch is awaited: many small commits would cost more, here and in silver."""
PUBLISH_SECONDS = 0.05
"""How long the relay takes to publish, while it receives transactions; after a pause, up to its tick longer."""


@dataclass(slots=True)
class LandingLoop:
    """The landing loop and its collaborators.

    Attributes:
        tracking: the structures of tables, for servers that send no column names.
        freshness: maximum age of a change when it reaches silver, in seconds: batches are gathered accordingly.
        interval: seconds between two batches for live reads; None: as `freshness` requires.
        repeated: the tables whose structures snapshots write, too.
        earlier: the structures before this run; None: each structure of the log is recorded once more.
        small: a session with the profile for small commits; None: `spark` lands every batch.
        reached: the end of bronze; None before anything has landed.
        segments: the contents of the relay folder when it was last listed, in log order.
    """

    spark: SparkSession
    source: SourceContext
    relaying: Relaying
    tracking: StructureTracking
    landed_ranges: RangeQueue
    counters: RunCounters
    repeated: RepeatedStructures = field(default_factory=RepeatedStructures)
    earlier: EarlierStructures | None = None
    small: SparkSession | None = None
    freshness: float = 0.0
    interval: float | None = None
    reached: Position | None = None
    segments: Sequence[Segment] = ()
    _listing: RelayListing = field(init=False)
    _purged: float = -PURGE_SECONDS
    _begun: float = float("-inf")
    _recorded: RecordedStructures | None = None

    def __post_init__(self) -> None:
        self._listing = RelayListing(self.relaying.folder, self.source.source_id)

    def run(self, landed: LandedRange | None, stop: StopRequest) -> None:
        """Land until the stop is requested, or the relay has ended and nothing is left."""
        self.reached = landed.end if landed else None
        said_at = (landed.at if landed else None) or datetime.now(timezone.utc)
        if landed is None:
            assert_whole(self._listing.segments())
        try:
            while not stop.requested:
                ended = self.relaying.has_ended()  # checked before listing: the list then includes its last segment
                batch = self._next_batch(landed, stop, gather=not ended)
                if batch is not None:
                    self._begun = time.monotonic()
                    with self.counters.spending(self.source.source_id, "land"):
                        done = self._land(batch, landed, stop)
                    if done is None:
                        return
                    landed, self.reached, said_at = done, done.end, datetime.now(timezone.utc)
                    self.landed_ranges.append(landed)
                    self.counters.landed(self.source.source_id, str(landed.end))
                    self._purge(landed)
                elif landed is not None and datetime.now(timezone.utc) - said_at >= KEEPALIVE_INTERVAL:
                    landed, said_at = write_keepalive(self.spark, self.source, landed), datetime.now(timezone.utc)
                elif ended:
                    return
                else:
                    stop.wait(POLL_SECONDS)
        finally:
            self.landed_ranges.close()

    def _next_batch(self, landed: LandedRange | None, stop: StopRequest, *, gather: bool) -> LandingBatch | None:
        """The next batch, once it is due and no longer grows. None also if the stop is requested."""
        until = time.monotonic() + GATHER_SECONDS
        while True:
            if self.interval is not None and time.monotonic() >= self._due:
                self.relaying.publish()
                stop.wait(PUBLISH_SECONDS)
            self.segments = self._listing.segments()
            batch = plan_landing(self.segments, landed)
            if batch is None or not gather or batch.end < self.segments[-1].end_position:
                return batch  # more is waiting behind it
            remaining = (until if batch.grows else self._due) - time.monotonic()
            if remaining <= 0:
                return batch
            if stop.wait(min(remaining, POLL_SECONDS)):
                return None

    @property
    def _due(self) -> float:
        """When the next batch is due if it does not fill before."""
        land = self.counters.recent(self.source.source_id, "land")
        return self._begun + plan_pause(self.freshness, land, self.interval)

    def _purge(self, landed: LandedRange) -> None:
        """Purge landed segments. Done here, because nothing else in this process lists segments."""
        if time.monotonic() - self._purged >= PURGE_SECONDS:
            self._purged = time.monotonic()
            free = shutil.disk_usage(self.relaying.folder).free
            old = landed_segments(self.segments, landed.end)
            purge(plan_purge(old, datetime.now(timezone.utc), free, self.relaying.purging), known_of(landed))

    def interrupt(self) -> None:
        """Cancel the current batch."""
        for session in filter(None, (self.spark, self.small)):
            cancel_jobs(session)

    def _land(self, batch: LandingBatch, landed: LandedRange | None, stop: StopRequest) -> LandedRange | None:
        """Land a batch; returns the new end of bronze, or None if the stop was requested before."""
        structures = self.tracking.follow(batch, landed, stop)
        if structures is None:
            return None
        if self._recorded is None:
            self._recorded = self._recorded_before(landed)
        recorded = self._recorded.copy(self.repeated.tables())
        spark = self.small if self.small is not None and batch.size <= SMALL_BYTES else self.spark
        try:
            done = land(spark, self.source, batch, landed, structures, recorded=recorded)
        except UnknownSchema:
            # The log has no column names, and the known structure does not fit: query the source, once.
            updated = self.tracking.recheck(batch, landed, stop)
            if updated is None:
                if stop.requested:
                    return None
                raise
            recorded = self._recorded.copy(self.repeated.tables())
            done = land(spark, self.source, batch, landed, updated, recorded=recorded)
        self.tracking.landed(batch)
        self.repeated.landed(batch.begin)
        self._recorded = recorded
        kept = self.source.memory.covers(done.begin, done.end)
        log.info("batch landed", source=self.source.source_id, batch=done.batch, end=str(done.end), kept_in_memory=kept)
        return done

    def _recorded_before(self, landed: LandedRange | None) -> RecordedStructures:
        """The structures that bronze has when the run starts; none if bronze is ahead of silver."""
        if landed is None or self.earlier is None:
            return RecordedStructures()
        self.repeated.written({name: at for name, at in self.earlier.ahead().items() if at >= landed.end})
        versions = self.earlier.versions() if self.earlier.end == landed.end else {}
        return RecordedStructures(landed.end.epoch, versions)
