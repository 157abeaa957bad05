"""Putting a source's pipeline together: its relay, and the stages behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landed_ranges import LaterLogs
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.engine.apply.known_shards import join_known_shards
from dmdelta.engine.apply.loop import ApplyingLoop
from dmdelta.engine.apply.requests import RangeRequests
from dmdelta.engine.apply.row_checks import FailureLog, TableChecks
from dmdelta.engine.apply.scheduler import TableScheduler
from dmdelta.engine.apply.table_state import Phase
from dmdelta.engine.apply.writer import TableApply
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.loop import LandingLoop
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.ingest.schema_history import SchemaHistory
from dmdelta.engine.ingest.schema_tracker import StructureTracking
from dmdelta.engine.maintenance.background import BackgroundMaintenance
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.run.pipeline import SourcePipeline
from dmdelta.engine.run.sink_assembly import coordinate_sink, open_sinking
from dmdelta.engine.run.source_start import (
    Backlog,
    OpenCheckpoint,
    SourceStart,
    open_backlog,
    open_checkpoint,
    open_start,
    start_relay,
)
from dmdelta.engine.sink import SinkingLoop
from dmdelta.engine.snapshot.ad_hoc import AdHocSnapshots
from dmdelta.engine.task.overrides import read_operators
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.engine.validation.validator import ValidatorLoop
from dmdelta.lakehouse.profiles import Profile, profile_session
from dmdelta.lakehouse.session import clone_session, takes_arrow
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.quality.results import ResultStore
from dmdelta.rules.operators import Operator
from dmdelta.sharding import Coordination, ShardSides
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.source.relay.relay_dir import log_end_of

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What the stages of a source share."""

    task: Task
    relaying: Relaying
    counters: RunCounters
    start: SourceStart
    checkpoint: OpenCheckpoint
    backlog: Backlog


def open_pipeline(
    task: Task, relaying: Relaying, counters: RunCounters, stop: StopRequest, sides: ShardSides
) -> SourcePipeline:
    """Determine the state of a source, start its relay and assemble the other stages.

    Args:
        sides: coordinate the shards of merged tables, across all sources.

    Raises:
        Fenced: another runner's relay is active.
        LakehouseError: bronze and the checkpoint are inconsistent.
    """
    start = open_start(task, relaying)
    # Before anything is written: the lock on its folder excludes a second runner. It relays while the rest is opened.
    start_relay(relaying, start)
    checkpoint = open_checkpoint(task, start, counters)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, relaying.source_id)
    backlog = open_backlog(task.spark, start, checkpoint.stored)
    opened = _Opened(task, relaying, counters, start, checkpoint, backlog)
    landing = _open_landing(opened)
    context = _open_silver(opened, operators, sides.silver)
    applying = _open_applying(opened, context)
    landing.repeated.reading = lambda: applying.scheduler.states.in_phase(Phase.SNAPSHOT)
    log.info("source opened", source=relaying.source_id, landed=str(start.landed.end) if start.landed else None)
    sinking = open_sinking(task, relaying, start, backlog.landed_ranges, context)
    coordinate_sink(task, relaying, sinking, sides.sink)
    return SourcePipeline(
        source_id=relaying.source_id,
        relaying=relaying,
        landing=landing,
        applying=applying,
        flusher=checkpoint.flusher,
        store=checkpoint.store,
        landed=start.landed,
        stop=stop,
        load=start.load,
        sinking=sinking,
        validator=_open_validator(opened, applying),
        maintenance=_open_maintenance(opened, applying.scheduler),
        ad_hoc=_open_ad_hoc(opened, applying.scheduler, landing, sinking),
    )


def _open_landing(opened: _Opened) -> LandingLoop:
    task, relaying, source = opened.task, opened.relaying, opened.start.source
    history = SchemaHistory(task.spark, task.lakehouse, task.spec.name, source.source_id)
    live = task.spec.live
    return LandingLoop(
        spark=task.spark,
        source=source,
        relaying=relaying,
        tracking=StructureTracking(task.spark, source, relaying, history),
        landed_ranges=opened.backlog.landed_ranges,
        counters=opened.counters,
        earlier=opened.backlog.earlier,
        small=_small_session(task.spark),
        freshness=0.0 if relaying.until_caught_up else task.spec.syncer.target_freshness.total_seconds(),
        interval=live.landing_interval.total_seconds() if live is not None else None,
    )


def _small_session(spark: SparkSession) -> SparkSession | None:
    """A session for landing small batches; None if executors decode every batch."""
    if not takes_arrow(spark):
        return None
    small = profile_session(spark, Profile.SMALL)
    register(small)  # a batch whose rows exceed the limit is decoded by executors after all
    return small


def _open_silver(opened: _Opened, operators: Mapping[Position, Operator], shards: Coordination) -> SilverContext:
    """The silver tables of the source. Registers its shards, so that those of the others wait for them."""
    task, relaying, source = opened.task, opened.relaying, opened.start.source
    context = replace(
        task.silver_context(source.source_id, relaying.flavor, operators, shards),
        checks=TableChecks(task.spark, task.suites),
        memory=source.memory,
    )
    if shards.mode is not None:
        join_known_shards(task.spark, context, opened.checkpoint.stored, relaying.read_catalog())
    shards.begins()
    return context


def _open_applying(opened: _Opened, context: SilverContext) -> ApplyingLoop:
    """The apply loop. The tables that ad-hoc snapshots read first are paused."""
    task, start, checkpoint = opened.task, opened.start, opened.checkpoint
    follows_load = opened.relaying.loads and start.load is None
    read_at = exact_positions(task.spark, start.source.bronze, context.source_id) if follows_load else {}
    spark = clone_session(task.spark)
    requests = RangeRequests(
        context,
        checkpoint.points,
        checkpoint.evidence,
        task.policy,
        opened.backlog.earlier,
        rest=LaterLogs(spark, start.source, partial(log_end_of, opened.relaying.folder)).rest,
    )
    requests.states.read_exactly(read_at)
    results = ResultStore(clone_session(task.spark), task.lakehouse, task.spec.name, task.run)
    record = FailureLog(results, context, task.suites)
    tables = TableApply(spark, context, checkpoint.points, requests, opened.counters, record)
    scheduler = TableScheduler(spark, tables, start.landed)
    scheduler.pause_tables(start.waiting)
    return ApplyingLoop(scheduler, opened.backlog.landed_ranges, checkpoint.flusher.request)


def _open_validator(opened: _Opened, applying: ApplyingLoop) -> ValidatorLoop | None:
    """The validator's loop, which receives what is applied from now on; None if the spec does not enable it."""
    config, endpoint = opened.task.spec.validator, opened.relaying.task.endpoint
    if config.mode == "none" or endpoint is None:
        return None
    applied_ranges = applying.applied_ranges = RangeQueue()
    stored = opened.checkpoint.stored
    return ValidatorLoop(
        spark=clone_session(opened.task.spark),
        context=applying.context,
        endpoint=endpoint,
        config=config,
        applied_ranges=applied_ranges,
        applied=stored.global_point.position if stored else None,
        held=lambda: applying.scheduler.states.held,
    )


def _open_maintenance(opened: _Opened, scheduler: TableScheduler) -> BackgroundMaintenance | None:
    """None if the spec disables it, or if the run ends by itself."""
    task, relaying = opened.task, opened.relaying
    if not task.spec.maintenance.automatic or relaying.until_caught_up:
        return None
    return BackgroundMaintenance(task, scheduler, shared=relaying.source_id == task.spec.sources[0].source_id)


def _open_ad_hoc(
    opened: _Opened, scheduler: TableScheduler, landing: LandingLoop, sinking: SinkingLoop | None
) -> AdHocSnapshots | None:
    """None for an archive, which has no tables to read."""
    if opened.relaying.task.endpoint is None:
        return None
    return AdHocSnapshots(
        task=opened.task,
        source=opened.start.source,
        relaying=opened.relaying,
        store=opened.start.chunks,
        scheduler=scheduler,
        counters=opened.counters,
        landed=opened.checkpoint.evidence.landed,
        joining=opened.start.joining,
        repeated=landing.repeated,
        feed=sinking.feed if sinking is not None else ReloadFeed(),
    )
