"""Opens a sink: take over the target, read the state of an earlier run, start the workers."""

from dataclasses import replace

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import SinkError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.careful import Caution
from dmdelta.sink.execute.barriers import Snapshots
from dmdelta.sink.execute.causality import Causality
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.purger import Purger
from dmdelta.sink.execute.slice_executor import SliceExecution
from dmdelta.sink.execute.worker import Worker
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.held_shards import HeldShards
from dmdelta.sink.plan.checkpoint import Checkpoint, PushedPoint
from dmdelta.sink.plan.safe_mode import Evidence, SafeMode, plan_safe_mode
from dmdelta.sink.read.change_reader import SliceReader
from dmdelta.sink.read.range_survey import BronzeLog
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.reloader import Reloader
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.shards import SinkShards
from dmdelta.sink.sink import Sink
from dmdelta.sink.statements import Statements
from dmdelta.sink.target.connection import TargetServer, session
from dmdelta.sink.target.metadata import Metadata, Stored
from dmdelta.sink.target.tables import Tables

log = get_logger(__name__)
QUEUED_ROWS = 4096
"""Approximate number of row changes waiting in one worker's queue."""


def open_sink(
    spark: SparkSession,
    source: SourceContext,
    settings: SinkSettings,
    landed: Position | None = None,
    ad_hoc: ReloadFeed | None = None,
    shards: SinkShards | None = None,
) -> Sink:
    """Take over the target and start the sink.

    Args:
        landed: where bronze ends now.
        ad_hoc: the source's ad-hoc snapshots.
        shards: coordinates statements on merged tables; None: they are not coordinated.

    Raises:
        TargetUnavailable: the target does not answer. SinkError: it refuses the connection or a statement.
    """
    metadata = Metadata(settings.metadata, source.task, source.source_id, source.run)
    stored = _take_over(metadata, settings)
    checkpoint = stored.checkpoint
    position = checkpoint.position if checkpoint else None
    if checkpoint is not None and shards is None:
        _assert_none_held(checkpoint)
    safe = _safe_mode(stored, settings, landed)
    proven = stored.proven
    if not proven and position is not None and not safe.is_unknown(position, 0.0):
        with session(settings.server) as connection:
            metadata.mark_whole(connection)
        proven = True
    log.info("sink opened", source=source.source_id, position=str(position), recorded=len(stored.executed))
    log.info("sink safe mode", source=source.source_id, why=safe.reason, until=str(safe.until), window_s=safe.window)
    progress, tables = _progress(checkpoint, safe), Tables(settings.server)
    dispatcher = _start_workers(metadata, settings)
    flusher = Flusher(
        settings.server,
        metadata,
        dispatcher.snapshots,
        progress,
        interval=settings.flush_interval,
        failed=dispatcher.fail,
        flushed=checkpoint,
    )
    log_of_source = BronzeLog(spark, source.bronze, source.source_id)
    points, held = (checkpoint.ahead(), checkpoint.held()) if checkpoint else ({}, {})
    if shards is not None:
        shards.open(checkpoint.tables if checkpoint else (), position, held)
    reader = SliceReader(spark, log_of_source, tables, source, settings=settings, executed=stored.executed)
    ordered, feed = settings.server.foreign_key_checks, ad_hoc or ReloadFeed()
    execution = SliceExecution(dispatcher, settings.compacts, ordered=ordered, merges=settings.multiple_rows)
    unfiltered, done = replace(reader, executed=ExecutedEvents()), stored.reloaded
    reloader = Reloader(settings, metadata, unfiltered, dispatcher, execution, progress, done=done)
    statements = Statements(source, log_of_source, tables, progress, flusher)
    statements.about_to = checkpoint.about_to[1] if checkpoint and checkpoint.about_to else None
    caution = Caution(safe, ordered, tables.fresh)
    sink = Sink(
        source=source,
        settings=settings,
        reader=replace(reader, points=points, held=held),
        tables=tables,
        dispatcher=dispatcher,
        execution=execution,
        flusher=flusher,
        progress=progress,
        purger=Purger(dispatcher.causality, dispatcher.snapshots, dispatcher.fail),
        executed=stored.executed,
        caution=caution,
        reloader=reloader,
        statements=statements,
        shards=HeldShards(shards, statements, reloader, caution, feed, held),
        proven=proven,
        position=position,
        ahead=max(points.values(), default=None),
        ad_hoc=feed,
    )
    sink.purger.start()
    if not settings.synchronous:
        flusher.start()
    return sink


def _assert_none_held(checkpoint: Checkpoint) -> None:
    if held := sorted(".".join(name) for name in checkpoint.held()):
        raise SinkError(
            f"shards wait for others in the sink, and shard-mode is not set: {', '.join(held)}",
            hint="set shard-mode again, and remove it when dmdelta shard-ddl-lock list shows no lock",
        )


def _safe_mode(stored: Stored, settings: SinkSettings, landed: Position | None) -> SafeMode:
    checkpoint = stored.checkpoint
    evidence = Evidence(
        checkpoint.position if checkpoint else None,
        checkpoint.exit_point if checkpoint else None,
        ended=checkpoint is not None and checkpoint.ended,
        proven=stored.proven,
        landed=landed,
    )
    return plan_safe_mode(evidence, always=settings.safe_mode, duration=settings.safe_mode_duration)


def _start_workers(metadata: Metadata, settings: SinkSettings) -> Dispatcher:
    snapshots: Snapshots[PushedPoint | None] = Snapshots(settings.workers, metadata.source_id)
    dispatcher = Dispatcher([], Causality(settings.workers), snapshots, settings.batch)
    depth = max(2, QUEUED_ROWS // settings.batch)
    dispatcher.begin(
        [
            Worker(number, settings.server, metadata, snapshots.receive, dispatcher.fail, depth)
            for number in range(settings.workers)
        ]
    )
    return dispatcher


def _progress(checkpoint: Checkpoint | None, safe: SafeMode) -> Progress:
    """What the new run inherits: the range that is not proven, the tables that are ahead, the GTID set."""
    points = [safe.until] if checkpoint is None else [safe.until, checkpoint.position, checkpoint.exit_point]
    progress = Progress(max((at for at in points if at is not None), default=None))
    if checkpoint is not None:
        progress.tables = checkpoint.ahead()
        progress.held = checkpoint.held()
        if checkpoint.gtid_set is not None:
            progress.add_gtids(checkpoint.position, checkpoint.gtid_set)
    return progress


def _take_over(metadata: Metadata, settings: SinkSettings) -> Stored:
    with session(settings.server) as connection:
        metadata.create(connection)
        reach(CrashPoint.SINK_BEFORE_TAKEOVER)
        metadata.take_over(connection, settings.workers)
        reach(CrashPoint.SINK_AFTER_TAKEOVER)
        return metadata.read(connection)


def flushed_position(server: TargetServer, metadata: Metadata) -> Position | None:
    """The position before which the target has everything, according to its newest checkpoint; None if it has none.

    Raises:
        TargetUnavailable: the target does not answer. SinkError: it refuses the connection or the query.
    """
    with session(server) as connection:
        checkpoint = metadata.points.read(connection)
    return min([checkpoint.position, *checkpoint.held().values()]) if checkpoint else None


def reloaded_tables(server: TargetServer, metadata: Metadata) -> dict[TableName, int]:
    """The epoch of the newest ad-hoc snapshot that the target has, by source table. Raises as `flushed_position`."""
    with session(server) as connection:
        return metadata.read_reloaded(connection)
