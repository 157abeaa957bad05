"""The sink loop of one source: executes landed ranges on the target, at its own pace. A failure stops nothing else."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dmdelta.bronze.landed_ranges import ranges_after
from dmdelta.bronze.progress import LandedRange, newest_landed
from dmdelta.bronze.retention import expired_to, is_forgotten
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.context import SourceContext
from dmdelta.config import SinkConfig, TaskSpec
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.supervise import AGAIN, SupervisedLoop
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.task.mapping import target_server
from dmdelta.errors import DmdeltaError, Retryable, SinkError, as_ours
from dmdelta.logging import get_logger
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import IDLE_SECONDS
from dmdelta.silver.schema.ddl_effects import follow
from dmdelta.silver.schema.lookup import structure_at, table_log
from dmdelta.silver.schema.range_profile import StructureEvent
from dmdelta.sink.metrics import SinkMetrics
from dmdelta.sink.read.slices import Statement
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.shards import ShardEffects, ShardLog, SinkShards
from dmdelta.sink.sink import Sink
from dmdelta.sink.startup import open_sink

log = get_logger(__name__)
WAIT_SECONDS = 0.5
RANGE_BYTES = 256 << 20
TELL_SECONDS = 30.0
"""How often the sink's counters are logged."""


@dataclass(slots=True)
class SinkingLoop(SupervisedLoop):
    """
    Attributes:
        landed_ranges: the batches that land in this run.
        feed: the ad-hoc snapshots.
        shards: coordinates the shards of merged tables; None: they are not coordinated.
        rest: the end of an overlap as a position in the log of an epoch; None: it was passed before (`LaterLogs`).
        failure: why the sink has stopped; everything else continues.
        transient: why it waits for its next attempt; None while the target answers.
    """

    spark: SparkSession
    source: SourceContext
    settings: SinkSettings
    landed_ranges: RangeQueue
    feed: ReloadFeed
    shards: SinkShards | None = None
    rest: Callable[[Position, int], Position | None] = lambda *_: None
    failure: DmdeltaError | None = None
    transient: DmdeltaError | None = None
    interval: float = 30.0
    _sink: Sink | None = None
    _reached: Position | None = None
    _busy: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _failures_at_end: int = 0
    """How often it has failed since everything has landed, and the run waits only for it."""

    @property
    def trouble(self) -> DmdeltaError | None:
        """Why there is no progress; None if there is."""
        return self.failure or self.transient

    @property
    def metrics(self) -> SinkMetrics | None:
        """The current counters; None before the target was reached."""
        return self._sink.metrics() if self._sink is not None else None

    @property
    def position(self) -> Position | None:
        """The position up to which everything was handed to the workers; None: nothing was."""
        ends = (self._reached, self._sink.position if self._sink is not None else None)
        return max(filter(None, ends), default=None)

    def cut_off(self) -> None:
        """After a stop that takes too long: end the sessions that may hold locks on the target."""
        if self._sink is not None:
            self._sink.cut_off()

    def change_interval(self, seconds: float) -> None:
        """Change the interval of the checkpoint."""
        self.interval = seconds
        if self._sink is not None:
            self._sink.flusher.interval = seconds

    def _should_retry(self, error: Exception, stop: StopRequest) -> bool:
        source_id = self.source.source_id
        if isinstance(error, Retryable):
            self.transient = as_ours(error, "the sink")
            self._failures_at_end += self.landed_ranges.closed
            retries = self._failures_at_end < AGAIN.attempts
            log.warning("sink failed", source=source_id, why=str(error), retries=retries and not stop.requested)
            if retries or stop.requested:
                return True
        self.failure = as_ours(error, "the sink")
        unknown = None if error is self.failure else error
        log.error("sink stopped; landing and silver continue", exc=unknown, source=source_id, why=str(self.failure))
        return False

    def _follow(self, stop: StopRequest) -> None:
        landed = newest_landed(self.spark, self.source)
        end = landed.end if landed else None
        self._sink = sink = open_sink(self.spark, self.source, self.settings, end, self.feed, self.shards)
        sink.flusher.interval, self.transient = self.interval, None
        orderly = False
        try:
            self._assert_kept(sink.oldest)
            self._assert_kept_of_snapshots(sink)
            # Read only now: what lands later comes through the queue; a batch may be in both.
            backlog = ranges_after(self.spark, self.source, landed, sink.position) if landed else []
            # No range follows one that was left: what it lacks would be skipped.
            if all(self._apply(sink, batch, stop) for batch in backlog):
                self._apply_what_lands(sink, stop)
            if self.landed_ranges.finished:  # a snapshot may have ended with it
                sink.reload_if_due(lambda: self._leaves(stop))
            orderly = True
        finally:
            sink.end(orderly=orderly)

    def _apply_what_lands(self, sink: Sink, stop: StopRequest) -> None:
        """After a stop, to the end of what has landed, as silver's tables."""
        while (stop.drains or not stop.requested) and not self._is_done(sink, stop):
            landed = self.landed_ranges.take(RANGE_BYTES, WAIT_SECONDS)
            if landed is not None and not self._apply(sink, landed, stop):
                return
            sink.dispatcher.check()
            if not sink.reload_if_due(lambda: self._leaves(stop)):
                return
            sink.flush_if_due()
            self._log_counters()

    def _run(self, stop: StopRequest) -> None:
        try:
            super(SinkingLoop, self)._run(stop)  # dataclasses with slots lack super()
        finally:
            self.landed_ranges.abandon()
            if self.shards is not None:
                self.shards.coordination.ends()

    def _is_done(self, sink: Sink, stop: StopRequest) -> bool:
        """Everything has landed and is executed, and no shard waits for another source that may still continue."""
        finished = self.landed_ranges.finished
        if self.shards is None:
            return finished
        shards = self.shards.coordination
        if finished or time.monotonic() > self._busy + IDLE_SECONDS:
            shards.assume_catalog_schemas(self.source.source_id)
        sink.resume_shards(lambda: self._leaves(stop))
        if not finished or stop.requested:
            return finished
        return shards.comes_to_rest(lambda: stop.wait(WAIT_SECONDS))

    def _assert_kept(self, position: Position | None) -> None:
        expired = expired_to(self.spark, self.source)
        if expired is not None and (position is None or position <= expired):
            raise SinkError(
                f"the target has row changes up to {position}, but those up to {expired} have expired from bronze",
                hint="use a separate task for this target, with another name and lakehouse root: it loads everything",
            )

    def _apply(self, sink: Sink, landed: LandedRange, stop: StopRequest) -> bool:
        self._busy = time.monotonic()
        sink.progress.add_gtids(landed.end, str(landed.gtid_set))
        if sink.position is not None and landed.end <= sink.position:
            return True
        if landed.safe_until is not None:  # a full load, which is complete in bronze, may have seen the range
            exact = exact_positions(self.spark, self.source.bronze, self.source.source_id)
            sink.caution.read_at = {name: at for name, at in exact.items() if at.epoch == landed.end.epoch}
        self.feed.enter_epoch(landed.begin.epoch, self.rest)
        if not sink.apply(landed.begin, landed.end, lambda: self._leaves(stop), landed.safe_until):
            return False
        self._reached, self._busy = landed.end, time.monotonic()
        return True

    @staticmethod
    def _leaves(stop: StopRequest) -> bool:
        return stop.requested and not stop.drains

    def _assert_kept_of_snapshots(self, sink: Sink) -> None:
        """Check that bronze has the rows of each snapshot that the target lacks, unless a later one replaces them."""
        state = self.feed.state
        left = {one.table: one for one in state.left(sink.reloader.done) if one.table not in state.awaited}
        for epoch in {one.epoch for one in left.values()}:
            if is_forgotten(self.spark, self.source, epoch):
                tables = sorted(".".join(one.table) for one in left.values() if one.epoch == epoch)
                raise SinkError(
                    f"the target lacks rows that an ad-hoc snapshot has read from {', '.join(tables)}, and they have "
                    "expired from bronze",
                    hint="request another one: dmdelta snapshot SPEC --table SCHEMA.TABLE",
                )

    @property
    def lacking(self) -> tuple[str, ...]:
        """The tables of which ad-hoc snapshots have read rows that the target does not have yet."""
        if self._sink is None:
            return ()
        left = self.feed.state.left(self._sink.reloader.done)
        return tuple(sorted({".".join(one.table) for one in left}))

    def _log_counters(self) -> None:
        if self._sink is None or time.monotonic() - self._told < TELL_SECONDS:
            return
        self._told = time.monotonic()
        counters = self._sink.metrics()
        log.info(
            "sink",
            source=counters.source_id,
            pushed=str(counters.pushed),
            ready=str(counters.ready),
            flushed=str(counters.flushed),
            flush_s=round(counters.flush_seconds, 3),
            keys=counters.keys,
            keys_added=counters.keys_added,
            keys_purged=counters.keys_purged,
            keys_waiting=counters.keys_waiting,
            keys_reset=counters.keys_reset,
            resets=counters.resets,
            queued=counters.queued,
            rows=[worker.rows for worker in counters.workers],
            statements=[worker.statements for worker in counters.workers],
        )


def shard_log(spark: SparkSession, source: SourceContext) -> ShardLog:
    """The structures of a source's tables, shards or not, from its log in bronze."""

    def structure(name: TableName, at: Position) -> TableSchema | None:
        return structure_at(spark, source, name, at)

    def effects(name: TableName, statement: Statement) -> ShardEffects:
        event = StructureEvent(statement.position, 0, Op.DDL, statement.text)
        before = structure(name, statement.position)
        found = follow(table_log(spark, source, name, (event,)), before, event, None)
        return ShardEffects(found.effects, found.schema)

    return ShardLog(structure, effects)


def sink_settings(spec: TaskSpec, config: SinkConfig) -> SinkSettings:
    """The sink's settings from the spec."""
    return SinkSettings(
        server=target_server(config),
        metadata=config.metadata,
        workers=config.worker_count,
        batch=config.batch,
        compact=config.compact,
        multiple_rows=config.multiple_rows,
        synchronous=config.flush == "sync",
        safe_mode=config.safe_mode or spec.syncer.safe_mode,
        safe_mode_duration=spec.syncer.safe_window.total_seconds(),
        flush_interval=spec.syncer.checkpoint_flush_interval.total_seconds(),
        sources=len(spec.sources),
    )
