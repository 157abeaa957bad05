"""Opens a sink: take over the target, read the state of an earlier run, start the workers."""

import secrets
from dataclasses import dataclass, replace

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
    # Not that of the process: a sink that an earlier attempt of it has left behind must not count as this one.
    run = f"{source.run}-{secrets.token_hex(4)}"
    metadata = Metadata(settings.metadata, source.task, source.source_id, run)
    stored = _take_over(metadata, settings)
    if shards is None:
        _assert_none_held(stored)
    start = _start(metadata, settings, stored, landed)
    if shards is not None:  # before the threads start: it reads bronze, and may fail
        shards.open(stored.checkpoint.tables if stored.checkpoint else (), start.position, start.held)
    bronze, tables = BronzeLog(spark, source.bronze, source.source_id), Tables(settings.server, metadata)
    reader = SliceReader(spark, bronze, tables, source, settings, ExecutedEvents())
    sink = _assembled(start, reader, ad_hoc or ReloadFeed(), shards)
    _start_threads(sink, metadata)
    return sink


@dataclass(frozen=True, slots=True)
class _Start:
    """What a run begins with.

    Attributes:
        proven: the records list everything that was executed after the checkpoint.
        held: the shards that wait, with the position of the statement.
    """

    metadata: Metadata
    stored: Stored
    safe: SafeMode
    proven: bool
    held: dict[TableName, Position]

    @property
    def position(self) -> Position | None:
        return self.stored.checkpoint.position if self.stored.checkpoint else None


def _start(metadata: Metadata, settings: SinkSettings, stored: Stored, landed: Position | None) -> _Start:
    """Decide on safe mode from the state of the earlier run, and declare the records complete if they are."""
    start = _Start(metadata, stored, _safe_mode(stored, settings, landed), stored.proven, _held(stored))
    source_id, safe, position = metadata.source_id, start.safe, start.position
    if not start.proven and position is not None and not safe.is_unknown(position, 0.0):
        with session(settings.server) as connection:
            metadata.mark_whole(connection)
        start = replace(start, proven=True)
    log.info("sink opened", source=source_id, position=str(position), recorded=len(stored.executed))
    log.info("sink safe mode", source=source_id, why=safe.reason, until=str(safe.until), window_s=safe.window)
    return start


def _assembled(start: _Start, reader: SliceReader, feed: ReloadFeed, shards: SinkShards | None) -> Sink:
    """The sink with all its parts; its threads do not run yet.

    Args:
        reader: reads everything.
    """
    source, settings, tables, stored = reader.source, reader.settings, reader.tables, start.stored
    progress, dispatcher = _progress(stored.checkpoint, start.safe), _dispatcher(start.metadata, settings)
    ordered = settings.server.foreign_key_checks
    execution = SliceExecution(dispatcher, settings.compacts, ordered=ordered, merges=settings.multiple_rows)
    reloader = Reloader(settings, start.metadata, reader, dispatcher, execution, progress, done=stored.reloaded)
    flusher = _flusher(start, settings, dispatcher, progress)
    statements = Statements(source, reader.log, tables, progress, flusher, settings.structure_at)
    points, about_to = {}, None
    if stored.checkpoint is not None:
        points, about_to = stored.checkpoint.ahead(), stored.checkpoint.about_to
    statements.about_to = about_to
    caution = Caution(start.safe, ordered, tables.fresh)
    return Sink(
        source=source,
        settings=settings,
        reader=replace(reader, executed=stored.executed, points=points, held=start.held),
        tables=tables,
        dispatcher=dispatcher,
        execution=execution,
        flusher=statements.flusher,
        progress=progress,
        purger=Purger(dispatcher.causality, dispatcher.snapshots, dispatcher.fail),
        executed=stored.executed,
        caution=caution,
        reloader=reloader,
        statements=statements,
        shards=HeldShards(shards, statements, reloader, caution, feed, start.held),
        proven=start.proven,
        position=start.position,
        ahead=max(points.values(), default=None),
        ad_hoc=feed,
    )


def _flusher(start: _Start, settings: SinkSettings, dispatcher: Dispatcher, progress: Progress) -> Flusher:
    return Flusher(
        settings.server,
        start.metadata,
        dispatcher.snapshots,
        progress,
        interval=settings.flush_interval,
        failed=dispatcher.fail,
        flushed=start.stored.checkpoint,
    )


def _held(stored: Stored) -> dict[TableName, Position]:
    return stored.checkpoint.held() if stored.checkpoint is not None else {}


def _assert_none_held(stored: Stored) -> None:
    if names := sorted(".".join(name) for name in _held(stored)):
        raise SinkError(
            f"shards wait for others in the sink, and shard-mode is not set: {', '.join(names)}",
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


def _dispatcher(metadata: Metadata, settings: SinkSettings) -> Dispatcher:
    snapshots: Snapshots[PushedPoint | None] = Snapshots(settings.workers, metadata.source_id)
    return Dispatcher([], Causality(settings.workers), snapshots, settings.batch)


def _start_threads(sink: Sink, metadata: Metadata) -> None:
    settings, dispatcher = sink.settings, sink.dispatcher
    received, failed, depth = dispatcher.snapshots.receive, dispatcher.fail, max(2, QUEUED_ROWS // settings.batch)
    dispatcher.begin(
        [Worker(number, settings.server, metadata, received, failed, depth) for number in range(settings.workers)]
    )
    sink.purger.start()
    if not settings.synchronous:
        sink.flusher.start()


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
