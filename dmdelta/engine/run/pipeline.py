"""The pipeline of one source: a relay process, a landing loop, an applying loop and a flusher."""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dmdelta.bronze.progress import LandedRange
from dmdelta.checkpoint import ORIGIN, CheckpointStore, Flusher, FlushReason
from dmdelta.engine.apply.loop import ApplyingLoop
from dmdelta.engine.apply.table_state import Phase
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.loop import LandingLoop
from dmdelta.engine.maintenance.background import BackgroundMaintenance
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.sink import SinkingLoop
from dmdelta.engine.snapshot.ad_hoc import AdHocSnapshots
from dmdelta.engine.snapshot.initial import FullLoad
from dmdelta.engine.task.live_settings import RunSettings
from dmdelta.engine.telemetry.stats import SourceStats, bytes_beyond
from dmdelta.engine.validation.validator import ValidatorLoop
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.source.relay.relay_task import read_status

log = get_logger(__name__)
LOOP_END_SECONDS = 20.0
"""The longest wait for the end of the sink, and of the validator."""
CANCEL_SECONDS = 0.5
"""A stage between two Spark jobs has nothing to cancel, so cancelling is repeated."""


@dataclass(slots=True)
class SourcePipeline:
    """The running stages of one source; its relay is already running. Call `start` once, then `join`, then `end`.

    Attributes:
        has_ended: `end` has returned.
    """

    source_id: str
    relaying: Relaying
    landing: LandingLoop
    applying: ApplyingLoop
    flusher: Flusher
    store: CheckpointStore
    landed: LandedRange | None
    stop: StopRequest
    load: FullLoad | None = None
    ad_hoc: AdHocSnapshots | None = None
    sinking: SinkingLoop | None = None
    validator: ValidatorLoop | None = None
    maintenance: BackgroundMaintenance | None = None
    has_ended: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)
    _interrupted: bool = False

    def start(self) -> None:
        self.flusher.start()
        self._start("land", self._land)
        self._start("apply", self._apply)
        if (maintenance := self.maintenance) is not None:
            self._start("maintenance", lambda: maintenance.follow(self.stop))
        if self.sinking is not None:
            self.sinking.start(f"sink-{self.source_id}", self.stop)
        if self.validator is not None:
            self.validator.start(f"validate-{self.source_id}", self.stop)

    @property
    def landed_to(self) -> Position | None:
        """The end of bronze; None before anything has landed."""
        if self.landing.reached is not None:
            return self.landing.reached
        return self.landed.end if self.landed is not None else None

    @property
    def running_stages(self) -> list[str]:
        """The stages whose threads are running: `land`, `apply`, `snapshot`, `maintenance`."""
        return [thread.name.removesuffix(f"-{self.source_id}") for thread in self._threads if thread.is_alive()]

    @property
    def finished(self) -> bool:
        """All loops have ended."""
        loops = (self.sinking, self.validator)
        return self._ended and all(loop is None or loop.finished for loop in loops)

    @property
    def _ended(self) -> bool:
        """Landing and applying have ended."""
        return not any(thread.is_alive() for thread in self._threads)

    def check(self) -> None:
        """Restart or report what fails outside the loops.

        Raises:
            DmdeltaError: the relay cannot continue, or a checkpoint could not be written.
        """
        self.relaying.check()
        self.flusher.check()

    def use(self, settings: RunSettings) -> None:
        """Apply settings that may have changed."""
        self.flusher.change_interval(settings.flush_interval)
        if self.sinking is not None:
            self.sinking.change_interval(settings.flush_interval.total_seconds())
        if self.validator is not None:
            self.validator.interval = settings.flush_interval.total_seconds()

    def join(self, deadline: float) -> bool:
        """Wait for the loops to end after a stop, until `deadline` (monotonic); False if one is still running."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return self._ended

    def interrupt(self, deadline: float) -> bool:
        """Cancel in-flight work until the loops have ended, or until `deadline` (monotonic); False after the deadline.

        Cancelled work commits nothing, and commits are recorded in the tables: nothing is left in doubt.
        """
        self._interrupted = True
        while not self._ended and time.monotonic() < deadline:
            self.landing.interrupt()
            self.applying.scheduler.tables.interrupt()
            for loop in (self.ad_hoc, self.maintenance):
                if loop is not None:
                    loop.interrupt()
            self.join(time.monotonic() + CANCEL_SECONDS)
        return self._ended

    def end(self, reason: FlushReason) -> None:
        """Stop the relay and write the last checkpoint.

        Raises:
            DmdeltaError: it could not be written; the next start then treats the run as crashed.
        """
        try:
            self._end(reason)
        finally:
            self.has_ended = True

    def _end(self, reason: FlushReason) -> None:
        self.relaying.stop()
        if self.sinking is not None and not self.sinking.join(LOOP_END_SECONDS):
            log.warning(
                "sink did not stop in time: its transactions in flight are committed or rolled back",
                source=self.source_id,
            )
            self.sinking.cut_off()
        if self.validator is not None and not self.validator.join(LOOP_END_SECONDS):
            log.warning("validator did not stop in time: its work in progress is repeated", source=self.source_id)
        if self._interrupted:
            self.applying.scheduler.tables.settle()
        self.flusher.end(reason)

    def _apply(self) -> None:
        try:
            self.applying.run(self.stop)
        finally:
            self.applying.context.shards.ends()
            if self.applying.applied_ranges is not None:
                self.applying.applied_ranges.close()

    def _land(self) -> None:
        landed = self.landed
        if self.load is not None:
            landed = self.load.run(self.landing.landed_ranges, self.landing.counters, self.stop)
            if landed is None:
                self.landing.landed_ranges.close()
                return  # before an ad-hoc snapshot: the sink waits for none
            self.applying.scheduler.states.read_exactly(self.load.exact_positions())
        ad_hoc = self.ad_hoc
        if ad_hoc is not None and self.relaying.until_caught_up:
            ad_hoc.run(self.stop)
            ad_hoc.feed.close()
        elif ad_hoc is not None:
            self._start("snapshot", lambda: ad_hoc.follow(self.stop))
        self.relaying.catch_up()
        self.landing.run(landed, self.stop)

    def _start(self, name: str, stage: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guard, args=(stage,), name=f"{name}-{self.source_id}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guard(self, stage: Callable[[], None]) -> None:
        try:
            stage()
        except BaseException as error:  # noqa: BLE001 - the run raises it
            self.stop.fail(error)


_BEHIND_RELAY = ("landed", "applied", "flushed", "sink_pushed", "sink_ready", "sunk")


def stats_of(pipeline: SourcePipeline) -> SourceStats:
    """The current state of a source. Reads only memory and the relay's folder."""
    folder, tables = pipeline.relaying.folder, pipeline.applying.scheduler.tables
    states = tables.requests.states
    relay, sinking, validator = read_status(folder), pipeline.sinking, pipeline.validator
    sink = sinking.metrics if sinking is not None else None
    positions = {
        "server": relay.server_end if relay else None,
        "relayed": Position(relay.epoch, relay.binlog_file, relay.offset) if relay and relay.binlog_file else None,
        "landed": pipeline.landing.reached,
        "applied": tables.points.reached,
        "flushed": pipeline.flusher.flushed,
        "sink_pushed": sink.pushed if sink is not None else None,
        "sink_ready": sink.ready if sink is not None else None,
        "sunk": sink.flushed if sink is not None else None,
        "validated": validator.reached if validator is not None else None,
    }
    reached = {stage: place for stage, place in positions.items() if place is not None and place.epoch > 0}
    if sinking is not None and positions["sunk"] is None and "landed" in reached:
        reached["sunk"] = ORIGIN  # no checkpoint, or the target has not answered yet: the sink lacks what has landed
    segments = pipeline.landing.segments
    return SourceStats(
        source_id=pipeline.source_id,
        positions=reached,
        relay_streams=relay is not None and relay.state in ("streaming", "caught up"),
        relay_retries=relay.retries if relay else 0,
        relay_free_bytes=shutil.disk_usage(folder).free if folder.exists() else 0,
        relay_bytes=sum(segment.size for segment in segments),
        waiting_bytes={stage: bytes_beyond(segments, reached[stage]) for stage in _BEHIND_RELAY if stage in reached},
        safe_tables=sum(state.is_safe for state in states),
        stopped=len(states.in_phase(Phase.STOPPED)),
        waiting=len(states.in_phase(Phase.WAITING)),
        memory_bytes=pipeline.applying.context.memory.size,
        sink=sink,
        sink_stopped=sinking is not None and sinking.failure is not None,
        validator=validator.figures if validator is not None else None,
    )
