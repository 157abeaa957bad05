"""The pipeline of one source: a relay process, a landing loop, an applying loop and a flusher."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed, landed_batches, newest_landed
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.context import SourceContext
from dmdelta.checkpoint import (
    CheckpointStore,
    Flusher,
    FlushReason,
    Points,
    Snapshot,
    SourceEvidence,
    StoredPoints,
    TablePoint,
    inherited_exit,
)
from dmdelta.checkpoint.restart_plan import check_bronze
from dmdelta.engine.apply.failure_log import FailureLog
from dmdelta.engine.apply.loop import ApplyingLoop
from dmdelta.engine.apply.requests import RangeRequests
from dmdelta.engine.apply.row_checks import TableChecks
from dmdelta.engine.apply.scheduler import TableScheduler
from dmdelta.engine.apply.shard_locks import join_known_shards
from dmdelta.engine.apply.writer import TableApply
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.loop import LandingLoop
from dmdelta.engine.ingest.queue import LandedLog
from dmdelta.engine.ingest.schema_history import SchemaHistory
from dmdelta.engine.ingest.schema_tracker import StructureTracking
from dmdelta.engine.maintenance.background import TableCare
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.sink import SinkingLoop, sink_settings
from dmdelta.engine.snapshot.ad_hoc import AdHocSnapshots, joining_tables
from dmdelta.engine.snapshot.initial import FullLoad, open_full_load
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.live_settings import LiveSettings
from dmdelta.engine.task.overrides import read_operators
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import Tally
from dmdelta.engine.validation.validator import ValidatorLoop
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.quality.results import ResultStore
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.row_checks import no_checks

log = get_logger(__name__)
CANCEL_SECONDS = 0.5
"""A stage between two Spark jobs has nothing to cancel, so cancelling is repeated."""


@dataclass(slots=True)
class SourcePipeline:
    """The running stages of one source; its relay is already running. Call `start` once, then `join`, then `end`."""

    source_id: str
    relaying: Relaying
    landing: LandingLoop
    applying: ApplyingLoop
    flusher: Flusher
    landed: Landed | None
    stop: StopRequest
    load: FullLoad | None = None
    ad_hoc: AdHocSnapshots | None = None
    sinking: SinkingLoop | None = None
    validator: ValidatorLoop | None = None
    care: TableCare | None = None
    _threads: list[threading.Thread] = field(default_factory=list)
    _interrupted: bool = False

    def start(self) -> None:
        self.flusher.start()
        self._start("land", self._land)
        self._start("apply", self._apply)
        if self.applying.side.shards.mode is not None:
            self._start("resync", lambda: self.applying.scheduler.resync(self.stop))
        if (care := self.care) is not None:
            self._start("care", lambda: care.follow(self.stop))
        if self.sinking is not None:
            self.sinking.start(self.stop)
        if self.validator is not None:
            self.validator.start(self.stop)

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

    def use(self, settings: LiveSettings) -> None:
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
            for loop in (self.ad_hoc, self.care):
                if loop is not None:
                    loop.interrupt()
            self.join(time.monotonic() + CANCEL_SECONDS)
        return self._ended

    def end(self, reason: FlushReason) -> None:
        """Stop the relay and write the last checkpoint.

        Raises:
            DmdeltaError: it could not be written; the next start then treats the run as crashed.
        """
        self.relaying.stop()
        if self.sinking is not None and not self.sinking.join():
            log.warning(
                "sink did not stop in time: its transactions in flight are committed or rolled back",
                source=self.source_id,
            )
        if self.validator is not None and not self.validator.join():
            log.warning("validator did not stop in time: its work in progress is repeated", source=self.source_id)
        if self._interrupted:
            self.applying.scheduler.tables.settle()
        self.flusher.end(reason)

    def _apply(self) -> None:
        try:
            self.applying.run(self.stop)
        finally:
            self.applying.side.shards.ends()
            if self.applying.applied_log is not None:
                self.applying.applied_log.close()

    def _land(self) -> None:
        landed = self.landed
        if self.load is not None:
            landed = self.load.run(self.landing.landed_log, self.landing.tally, self.stop)
            if landed is None:
                self.landing.landed_log.close()
                return
            self.applying.scheduler.states.read_exactly(self.load.exact_positions())
        ad_hoc = self.ad_hoc
        if ad_hoc is not None and self.relaying.until_caught_up:
            ad_hoc.run(self.stop)
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


def open_pipeline(
    task: Task, relaying: Relaying, tally: Tally, stop: StopRequest, shards: Coordination
) -> SourcePipeline:
    """Determine the state of a source, start its relay and assemble the other stages.

    Args:
        shards: coordinates the shards of merged tables, across all sources.

    Raises:
        Fenced: another runner's relay is active.
        LakehouseError: bronze and the checkpoint are inconsistent.
    """
    source_id = relaying.source_id
    source = task.landing_source(source_id, relaying.flavor)
    landed = newest_landed(task.spark, source)
    load = open_full_load(task, relaying, source, landed)
    chunks = ChunkStore(task.spark, task.lakehouse, task.spec.name, source_id, task.run)
    joining = waiting = frozenset[TableName]()
    if load is None and relaying.task.endpoint is not None:
        joining = joining_tables(task.spark, source, relaying, chunks)
        waiting = joining | chunks.awaited().tables
    if load:
        landed = load.landed
    begin = load.log_begin if load else landed
    (relaying.begin_ahead if load or waiting else relaying.begin_behind)(begin)
    # Before anything is written: the lock on its folder excludes a second runner. It relays while the rest is opened.
    relaying.start()
    store = CheckpointStore(task.spark, task.lakehouse, task.spec.name, source_id, task.run)
    stored = store.open()
    evidence = SourceEvidence(landed.end if landed else None, stored)
    check_bronze(evidence)
    points = Points(source_id, stored, inherited_exit(evidence))
    flusher = Flusher(_TimedStore(store, tally), points, stored, task.in_force.settings.flush_interval)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, source_id)
    landed_log = LandedLog()
    for batch in _unapplied(task.spark, source, landed, stored):
        landed_log.append(batch)
    history = SchemaHistory(task.spark, task.lakehouse, task.spec.name, source_id)
    tracking = StructureTracking(task.spark, source, relaying, history)
    freshness = 0.0 if relaying.until_caught_up else task.spec.syncer.target_freshness.total_seconds()
    landing = LandingLoop(task.spark, source, relaying, tracking, landed_log, tally, freshness)
    side = replace(
        task.silver_side(source_id, relaying.flavor, operators, shards),
        checks=TableChecks(task.spark, task.suites) if task.suites.by_table else no_checks,
    )
    if shards.mode is not None:
        join_known_shards(side, stored, relaying.read_catalog())
    shards.begins()
    read_at = exact_positions(task.spark, source.bronze, source_id) if relaying.loads and not load else {}
    requests = RangeRequests(side, points, evidence, task.policy)
    requests.states.read_exactly(read_at)
    spark = clone_session(task.spark)
    record = FailureLog(
        ResultStore(clone_session(task.spark), task.lakehouse, task.spec.name, task.run), side, task.suites
    )
    tables = TableApply(spark, side, points, requests, tally, record)
    scheduler = TableScheduler(spark, tables, lambda: landed_log.waiting, landed)
    scheduler.pause_tables(waiting)
    applying = ApplyingLoop(scheduler, landed_log, flusher.request)
    log.info("source opened", source=source_id, landed=str(landed.end) if landed else None)
    pipeline = SourcePipeline(source_id, relaying, landing, applying, flusher, landed, stop, load)
    pipeline.sinking = _open_sinking(task, source, landing, landed)
    pipeline.validator = _open_validator(task, relaying, applying, stored)
    if task.spec.maintenance.automatic and not relaying.until_caught_up:
        pipeline.care = TableCare(task, scheduler, shared=source_id == task.spec.sources[0].source_id)
    if relaying.task.endpoint is not None:
        pipeline.ad_hoc = AdHocSnapshots(task, source, relaying, chunks, scheduler, tally, evidence.landed, joining)
    return pipeline


@dataclass(frozen=True, slots=True)
class _TimedStore:
    """The checkpoint store, with its writes timed as a phase of the run."""

    store: CheckpointStore
    tally: Tally

    def write(self, snapshot: Snapshot, changed: Sequence[TablePoint], reason: FlushReason) -> None:
        with self.tally.spending(self.store.source_id, "flush"):
            self.store.write(snapshot, changed, reason)


def _open_sinking(task: Task, source: SourceContext, landing: LandingLoop, landed: Landed | None) -> SinkingLoop | None:
    """The sink's loop, which receives what lands from now on; None without a sink."""
    config = task.spec.sink
    if config is None:
        return None
    ahead = LandedLog()
    landing.landed_log.follow_with(ahead)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, source.source_id)
    rules = replace(task.rules(source.source_id), operators=operators)
    own = replace(source, rules=rules)
    settings = sink_settings(task.spec, config)
    return SinkingLoop(clone_session(task.spark), own, settings, ahead, landed)


def _open_validator(
    task: Task, relaying: Relaying, applying: ApplyingLoop, stored: StoredPoints | None
) -> ValidatorLoop | None:
    """The validator's loop, which receives what is applied from now on; None if the spec does not enable it."""
    config, endpoint = task.spec.validator, relaying.task.endpoint
    if config.mode == "none" or endpoint is None:
        return None
    applied_log = applying.applied_log = LandedLog()
    applied = stored.global_point.position if stored else None
    spark = clone_session(task.spark)
    return ValidatorLoop(
        spark, applying.side, endpoint, config, applied_log, applied, lambda: applying.scheduler.states.held
    )


def _unapplied(
    spark: SparkSession, source: SourceContext, landed: Landed | None, stored: StoredPoints | None
) -> list[Landed]:
    """The batches in bronze that are not applied to every silver table. The first starts at the checkpoint."""
    applied = stored.global_point.position if stored else None
    if landed is None or landed.end == applied:
        return []
    batches = landed_batches(spark, source, applied)
    if batches and applied is not None and applied < batches[0].begin:
        batches[0] = replace(batches[0], begin=applied)
    return batches
