"""Beginning anew: the log is read again from a place of one's choice, in an epoch of its own.

What has landed stays in bronze, older epochs before newer ones. What may have been applied already, everything up to
where the source's log ended at that moment, is applied in safe mode. The mark is a commit of bronze without rows, so a
crash right after it leaves a task that goes on at the new place.
"""

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed, LandingSource, begin_anew, newest_beginning, newest_landed
from dmdelta.checkpoint import CheckpointStore, FlushReason, Point, Snapshot
from dmdelta.engine.relaying import Relaying
from dmdelta.engine.task import Task
from dmdelta.errors import ConfigError
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.source.folder import locked, newest_begin
from dmdelta.source.start import Beginning, StartTime, find_in_archive, find_on_server
from dmdelta.source.task import Start

log = get_logger(__name__)


def begin_source(task: Task, relaying: Relaying, start: Start | StartTime) -> Position:
    """Forget where a source stands: the next run begins it anew at `start`. Where that is.

    Raises:
        ConfigError: the source's first start is a full load, and no start time is given.
        Fenced: the task is running.
        PositionLost, SourceError, SourceUnavailable: the source does not have the place.
    """
    if relaying.loads and not isinstance(start, StartTime):
        raise ConfigError(
            f"{relaying.source_id}: a full load cannot be begun anew over tables that are there",
            hint="remove the task's lakehouse tables, or begin at a --start-time or at `meta`",
        )
    source = task.landing_source(relaying.source_id, relaying.flavor)
    with locked(relaying.folder):
        landed = newest_landed(task.spark, source)
        begun = _mark(task.spark, source, relaying, landed, start)
        if begun != landed:
            _forget_tables(
                CheckpointStore(task.spark, task.lakehouse, task.spec.name, source.source_id, task.run), begun
            )
    return begun.end


def _mark(
    spark: SparkSession, source: LandingSource, relaying: Relaying, landed: Landed | None, start: Start | StartTime
) -> Landed:
    """Say so in bronze; a start time that the newest epoch began with is not begun twice."""
    found = _find(relaying, start)
    if isinstance(start, StartTime) and landed is not None:
        begun = newest_beginning(spark, source)
        if begun is not None and (begun.binlog_file, begun.offset) == found.begin:
            return landed
    relayed = newest_begin(relaying.folder)
    epoch = 1 + max(landed.end.epoch if landed else 0, relayed.epoch if relayed else 0)
    begin = Position(epoch, *found.begin)
    log.warning(
        "source is begun anew",
        source=source.source_id,
        begin=str(begin),
        safe_mode_until=str(Position(epoch, *found.log_end)),
        caveat="rows of tables without a key that are read again are there twice",
    )
    return begin_anew(spark, source, landed, begin, safe_until=Position(epoch, *found.log_end))


def _forget_tables(store: CheckpointStore, begun: Landed) -> None:
    """Write down that every table goes on where the source begins, whatever became of it."""
    stored = store.open()
    if stored is None:
        return
    point = Point(begun.end)
    tables = tuple(replace(table, point=point, delta_version=None) for table in stored.tables.values())
    store.write(Snapshot(store.source_id, point, tables, None), tables, FlushReason.RESET)


def _find(relaying: Relaying, start: Start | StartTime) -> Beginning:
    task = relaying.task
    if task.endpoint is None:
        return find_in_archive(Path(task.binlog_dir or ""), start)
    return find_on_server(task.endpoint, start)
