"""Restarting a source: the log is read again from a chosen position, in a new epoch.

What has landed stays in bronze, older epochs before newer ones. Everything up to the current end of the source's log
may already have been applied, so it is applied in safe mode. The mark is a commit of bronze without rows, so after a
crash right after it the task resumes at the new position.
"""

from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from dmdelta.bronze.landing import start_epoch
from dmdelta.bronze.progress import LandedRange, has_landed, newest_beginning, newest_epoch, recorded_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.checkpoint import CheckpointStore, FlushReason, Point, Snapshot
from dmdelta.config import TaskSpec
from dmdelta.engine.ingest.schema_history import SchemaHistory
from dmdelta.engine.relay.supervisor import Relaying, open_relaying
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.task import Task, open_task
from dmdelta.logging import get_logger
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.relay_dir import locked, locked_for_run, newest_begin
from dmdelta.source.relay.relay_task import Start
from dmdelta.source.relay.start_position import Beginning, StartTime, find_in_archive, find_on_server
from dmdelta.source.server import server_position

log = get_logger(__name__)


def begin_source(task: Task, relaying: Relaying, start: Start | StartTime) -> Position:
    """Reset a source: the next run restarts it at `start`. Returns that position.

    Raises:
        Fenced: the task is running.
        PositionLost, SourceError, SourceUnavailable: the source does not have the position.
    """
    source = task.landing_source(relaying.source_id, relaying.flavor)
    with locked_for_run(relaying.folder), locked(relaying.folder):
        landed = recorded_landed(task.spark, source)
        endpoint = relaying.task.endpoint
        if relaying.loads and endpoint is not None and not isinstance(start, StartTime):
            restarted = _restart_full_load(task, source, relaying, landed, endpoint)
        else:
            restarted = _mark(task, source, relaying, landed, start)
        if restarted != landed:
            _forget_tables(
                CheckpointStore(task.spark, task.lakehouse, task.spec.name, source.source_id, task.run), restarted
            )
    return restarted.end


def _mark(
    task: Task, source: SourceContext, relaying: Relaying, landed: LandedRange | None, start: Start | StartTime
) -> LandedRange:
    """Mark the restart in bronze; a start time at which the newest epoch already started has no effect."""
    beginning = _find(relaying, start)
    if isinstance(start, StartTime) and landed is not None:
        newest = newest_beginning(task.spark, source)
        if newest is not None and (newest.binlog_file, newest.offset) == beginning.begin:
            return landed
    epoch = _next_epoch(task, source, relaying, landed)
    begin = Position(epoch, *beginning.begin)
    log.warning(
        "restarting from a new position",
        source=source.source_id,
        begin=str(begin),
        safe_mode_until=str(Position(epoch, *beginning.log_end)),
        caveat="rows of tables without a key that are read again are duplicated",
    )
    _forget_structures(task, source, begin)
    return start_epoch(task.spark, source, landed, begin, safe_until=Position(epoch, *beginning.log_end))


def _restart_full_load(
    task: Task, source: SourceContext, relaying: Relaying, landed: LandedRange | None, endpoint: Endpoint
) -> LandedRange:
    """Request a new read of every table, and resume the log at the server's current position."""
    with closing(open_connection(endpoint)) as connection:
        now = server_position(connection)
    begin = Position(_next_epoch(task, source, relaying, landed), now.binlog_file, now.offset)
    if landed is None and not has_landed(task.spark, source):
        return LandedRange(
            0, begin, begin, now.gtid_set or parse_gtid_set("", source.flavor)
        )  # the first run loads anyway
    store = ChunkStore(task.spark, task.lakehouse, task.spec.name, source.source_id, task.run)
    store.open()
    tables = [schema.name for schema in relaying.read_catalog()]
    store.request(tables)
    log.warning("restarting with a full load", source=source.source_id, begin=str(begin), tables=len(tables))
    _forget_structures(task, source, begin)
    return start_epoch(task.spark, source, landed, begin, gtid_set=now.gtid_set)


def _forget_structures(task: Task, source: SourceContext, begin: Position) -> None:
    """Tracked structures may be newer than the position. Written before the mark: without it, this has no effect."""
    SchemaHistory(task.spark, task.lakehouse, task.spec.name, source.source_id).start_epoch(begin)


def _next_epoch(task: Task, source: SourceContext, relaying: Relaying, landed: LandedRange | None) -> int:
    relayed = newest_begin(relaying.folder)
    newest = landed.end.epoch if landed is not None else newest_epoch(task.spark, source)
    if landed is not None and landed.end.chunk is not None:
        newest += 1  # the epoch of the log that a full load has planned, even if the relay has not begun it
    return 1 + max(newest, relayed.epoch if relayed else 0)


def _forget_tables(store: CheckpointStore, restarted: LandedRange) -> None:
    """Record that every table resumes where the source restarts."""
    stored = store.open()
    if stored is None:
        return
    point = Point(restarted.end)
    tables = tuple(replace(table, point=point, delta_version=None) for table in stored.tables.values())
    store.write(Snapshot(store.source_id, point, tables, None), tables, FlushReason.RESET)


def _find(relaying: Relaying, start: Start | StartTime) -> Beginning:
    task = relaying.task
    if task.endpoint is None:
        return find_in_archive(Path(task.binlog_dir or ""), start)
    return find_on_server(task.endpoint, start)


@dataclass(frozen=True, slots=True)
class ResetSource:
    """A source and where its next run starts."""

    source: str
    begins: Position


def reset_task(spec: TaskSpec) -> list[ResetSource]:
    """Reset a task.

    Raises:
        Fenced: it is running.
        DmdeltaError: a source or the lakehouse is unavailable, or the source lacks the spec's start position.
    """
    with ExitStack() as opened:
        relayings = [opened.enter_context(open_relaying(spec, source, until_caught_up=True)) for source in spec.sources]
        task = open_task(spec)
        return [
            ResetSource(relaying.source_id, begin_source(task, relaying, relaying.task.start)) for relaying in relayings
        ]
