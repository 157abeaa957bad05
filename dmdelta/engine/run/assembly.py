"""Putting a source's pipeline together: where the source stands, its relay, and the stages behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landed_ranges import ranges_after
from dmdelta.bronze.progress import LandedRange, newest_landed
from dmdelta.bronze.retention import expired_to
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.batch_memory import MEMORY_BYTES, BatchMemory
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
from dmdelta.engine.sink import SinkingLoop, shard_log, sink_settings
from dmdelta.engine.snapshot.ad_hoc import AdHocSnapshots, joining_tables, open_feed
from dmdelta.engine.snapshot.initial import open_full_load
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.mapping import sinks_passing_rows
from dmdelta.engine.task.overrides import read_operators
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.engine.validation.validator import ValidatorLoop
from dmdelta.errors import QualityError
from dmdelta.lakehouse.profiles import Profile, profile_session
from dmdelta.lakehouse.session import clone_session, takes_arrow
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.quality.results import ResultStore
from dmdelta.sharding import Coordination, ShardSides
from dmdelta.silver.apply.quarantine_marks import QuarantineMarks
from dmdelta.silver.apply.row_checks import no_checks
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.shards import SinkShards
from dmdelta.source.connection import START_OVER

log = get_logger(__name__)


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
    source_id, shards = relaying.source_id, sides.silver
    source = replace(task.landing_source(source_id, relaying.flavor), memory=BatchMemory(MEMORY_BYTES))
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
    flusher = Flusher(_TimedStore(store, counters), points, stored, task.live_settings.settings.flush_interval)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, source_id)
    landed_ranges, earlier = _open_ranges(task.spark, source, landed, stored)
    history = SchemaHistory(task.spark, task.lakehouse, task.spec.name, source_id)
    tracking = StructureTracking(task.spark, source, relaying, history)
    freshness = 0.0 if relaying.until_caught_up else task.spec.syncer.target_freshness.total_seconds()
    landing = LandingLoop(
        spark=task.spark,
        source=source,
        relaying=relaying,
        tracking=tracking,
        landed_ranges=landed_ranges,
        counters=counters,
        earlier=earlier,
        small=_small_session(task.spark),
        freshness=freshness,
        interval=task.spec.live.landing_interval.total_seconds() if task.spec.live is not None else None,
    )
    context = replace(
        task.silver_context(source_id, relaying.flavor, operators, shards),
        checks=TableChecks(task.spark, task.suites) if task.suites.by_table else no_checks,
        memory=source.memory,
    )
    if shards.mode is not None:
        join_known_shards(task.spark, context, stored, relaying.read_catalog())
    shards.begins()
    read_at = exact_positions(task.spark, source.bronze, source_id) if relaying.loads and not load else {}
    requests = RangeRequests(context, points, evidence, task.policy, earlier)
    requests.states.read_exactly(read_at)
    spark = clone_session(task.spark)
    record = FailureLog(
        ResultStore(clone_session(task.spark), task.lakehouse, task.spec.name, task.run), context, task.suites
    )
    tables = TableApply(spark, context, points, requests, counters, record)
    scheduler = TableScheduler(spark, tables, landed)
    scheduler.pause_tables(waiting)
    landing.repeated.reading = lambda: scheduler.states.in_phase(Phase.SNAPSHOT)
    applying = ApplyingLoop(scheduler, landed_ranges, flusher.request)
    log.info("source opened", source=source_id, landed=str(landed.end) if landed else None)
    pipeline = SourcePipeline(
        source_id=source_id,
        relaying=relaying,
        landing=landing,
        applying=applying,
        flusher=flusher,
        store=store,
        landed=landed,
        stop=stop,
        load=load,
    )
    pipeline.sinking = sinking = _open_sinking(task, context, landing, landed, (chunks, joining))
    _coordinate_sink(task, relaying, sinking, sides.sink)
    pipeline.validator = _open_validator(task, relaying, applying, stored)
    if task.spec.maintenance.automatic and not relaying.until_caught_up:
        pipeline.maintenance = BackgroundMaintenance(
            task, scheduler, shared=source_id == task.spec.sources[0].source_id
        )
    if relaying.task.endpoint is not None:
        pipeline.ad_hoc = AdHocSnapshots(
            task=task,
            source=source,
            relaying=relaying,
            store=chunks,
            scheduler=scheduler,
            counters=counters,
            landed=evidence.landed,
            joining=joining,
            repeated=landing.repeated,
            feed=sinking.feed if sinking is not None else ReloadFeed(),
        )
    return pipeline


def _small_session(spark: SparkSession) -> SparkSession | None:
    """A session for landing small batches; None if executors decode every batch."""
    if not takes_arrow(spark):
        return None
    small = profile_session(spark, Profile.SMALL)
    register(small)  # a batch whose rows exceed the limit is decoded by executors after all
    return small


@dataclass(frozen=True, slots=True)
class _TimedStore:
    """The checkpoint store, with its writes timed as a phase of the run."""

    store: CheckpointStore
    counters: RunCounters

    def write(self, snapshot: Snapshot, changed: Sequence[TablePoint], reason: FlushReason) -> None:
        with self.counters.spending(self.store.source_id, "flush"):
            self.store.write(snapshot, changed, reason)


def _open_sinking(
    task: Task,
    context: SilverContext,
    landing: LandingLoop,
    landed: LandedRange | None,
    ad_hoc: tuple[ChunkStore, frozenset[TableName]],
) -> SinkingLoop | None:
    """The sink's loop, which receives what lands from now on, and what ad-hoc snapshots read; None without a sink.

    Args:
        ad_hoc: the snapshots, and the tables that join in this run.
    """
    config, source = task.spec.sink, landing.source
    if config is None:
        return None
    ahead = RangeQueue()
    landing.landed_ranges.follow_with(ahead)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, source.source_id)
    rules = replace(task.rules(source.source_id), operators=operators)
    own = replace(source, rules=rules)
    settings = sink_settings(task.spec, config)
    if sinks_passing_rows(task.spec):
        settings = replace(settings, quarantining=QuarantineMarks(context))
    feed = open_feed(*ad_hoc, source.flavor)
    if landing.relaying.task.endpoint is None:
        feed.close()  # an archive has no tables to read
    return SinkingLoop(clone_session(task.spark), own, settings, ahead, landed, feed)


def _coordinate_sink(
    task: Task, relaying: Relaying, sinking: SinkingLoop | None, coordination: Coordination | None
) -> None:
    """Register the shards of a source, so that those of the others wait for them."""
    if sinking is None or coordination is None or coordination.mode is None:
        return
    sinking.shards = SinkShards(
        relaying.source_id,
        sinking.source.rules,
        coordination,
        len(task.spec.sources),
        shard_log(sinking.spark, sinking.source),
        {schema.name: schema for schema in relaying.read_catalog()},
    )
    sinking.shards.register()
    coordination.begins()


def _open_validator(
    task: Task, relaying: Relaying, applying: ApplyingLoop, stored: StoredPoints | None
) -> ValidatorLoop | None:
    """The validator's loop, which receives what is applied from now on; None if the spec does not enable it."""
    config, endpoint = task.spec.validator, relaying.task.endpoint
    if config.mode == "none" or endpoint is None:
        return None
    applied_ranges = applying.applied_ranges = RangeQueue()
    applied = stored.global_point.position if stored else None
    spark = clone_session(task.spark)
    return ValidatorLoop(
        spark=spark,
        context=applying.context,
        endpoint=endpoint,
        config=config,
        applied_ranges=applied_ranges,
        applied=applied,
        held=lambda: applying.scheduler.states.held,
    )


def _open_ranges(
    spark: SparkSession, source: SourceContext, landed: LandedRange | None, stored: StoredPoints | None
) -> tuple[RangeQueue, EarlierStructures]:
    """The queue of landed ranges with those that an earlier run has left, and the structures before its first range."""
    landed_ranges, unapplied = RangeQueue(), _unapplied(spark, source, landed, stored)
    for batch in unapplied:
        landed_ranges.append(batch)
    # The first batch may be the mark of a position, without rows.
    is_empty = landed is None or (landed.batch == 1 and landed.begin == landed.end)
    first = unapplied[0].begin if unapplied else landed.end if landed is not None else None
    return landed_ranges, EarlierStructures(spark, source, None if is_empty else first)


def _unapplied(
    spark: SparkSession, source: SourceContext, landed: LandedRange | None, stored: StoredPoints | None
) -> list[LandedRange]:
    """The ranges in bronze that are not applied to every silver table. The first starts at the checkpoint.

    Raises:
        QualityError: row changes of these ranges have expired.
    """
    applied = stored.global_point.position if stored else None
    if landed is None or landed.end == applied:
        return []
    batches = ranges_after(spark, source, landed, applied)
    expired = expired_to(spark, source) if batches else None
    if expired is not None and (applied is None or applied <= expired):
        # Changes expire regardless of a source that is not in the spec at that time.
        raise QualityError(
            f"{source.source_id} is applied up to {applied}, but row changes up to {expired} have expired from bronze",
            hint=START_OVER,
        )
    if batches and applied is not None and applied < batches[0].begin:
        batches[0] = replace(batches[0], begin=applied)
    return batches
