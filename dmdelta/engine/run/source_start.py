"""Where a source stands when its run starts: bronze, its snapshots, its checkpoint, and its backlog."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.landed_ranges import ranges_after
from dmdelta.bronze.progress import LandedRange, newest_landed
from dmdelta.bronze.retention import expired_to
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
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.snapshot.ad_hoc import joining_tables
from dmdelta.engine.snapshot.initial import FullLoad, open_full_load
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import QualityError
from dmdelta.model.schema import TableName
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.source.connection import START_OVER


@dataclass(frozen=True, slots=True)
class SourceStart:
    """Where bronze and the snapshots of a source stand.

    Attributes:
        landed: the end of bronze, None if nothing has landed.
        load: the full load that is read before the log is applied, None if none is left.
        joining: tables that were selected since the last run.
        waiting: tables that ad-hoc snapshots read first, including `joining`.
    """

    source: SourceContext
    landed: LandedRange | None
    load: FullLoad | None
    chunks: ChunkStore
    joining: frozenset[TableName]
    waiting: frozenset[TableName]


def open_start(task: Task, relaying: Relaying) -> SourceStart:
    """Determine where a source stands, and start or resume its full load.

    Raises:
        Fenced: the task is running.
        SourceError, SourceUnavailable: the source's tables cannot be read.
        LakehouseError: bronze or the plans of the snapshots cannot be read.
    """
    source = replace(task.landing_source(relaying.source_id, relaying.flavor), memory=BatchMemory(MEMORY_BYTES))
    landed = newest_landed(task.spark, source)
    load = open_full_load(task, relaying, source, landed)
    chunks = ChunkStore(task.spark, task.lakehouse, task.spec.name, source.source_id, task.run)
    joining = waiting = frozenset[TableName]()
    if load is None and relaying.task.endpoint is not None:
        joining = joining_tables(task.spark, source, relaying, chunks)
        waiting = joining | chunks.awaited().tables
    return SourceStart(source, landed if load is None else load.landed, load, chunks, joining, waiting)


def start_relay(relaying: Relaying, start: SourceStart) -> None:
    """Start the relay behind what has landed. While tables are read, it relays without end.

    Raises:
        Fenced: another runner's relay holds the folder.
        DmdeltaError: it does not start.
    """
    begin = start.landed if start.load is None else start.load.log_begin
    if start.load is not None or start.waiting:
        relaying.begin_ahead(begin)
    else:
        relaying.begin_behind(begin)
    relaying.start()


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A source's checkpoint, and what a run knows of it.

    Attributes:
        evidence: the state of the source, from which each table's restart is planned.
        points: the positions that the tables reach in this run.
    """

    store: CheckpointStore
    evidence: SourceEvidence
    points: Points
    flusher: Flusher

    @property
    def stored(self) -> StoredPoints | None:
        """The points of the last flush of earlier runs, None if there was none."""
        return self.evidence.stored


def open_checkpoint(task: Task, start: SourceStart, counters: RunCounters) -> OpenCheckpoint:
    """Open the checkpoint of a source. Its flusher is not started.

    Raises:
        LakehouseError: it cannot be read, or bronze ends before it.
    """
    source_id, landed = start.source.source_id, start.landed
    store = CheckpointStore(task.spark, task.lakehouse, task.spec.name, source_id, task.run)
    stored = store.open()
    evidence = SourceEvidence(landed.end if landed else None, stored)
    check_bronze(evidence)
    points = Points(source_id, stored, inherited_exit(evidence))
    flusher = Flusher(_TimedStore(store, counters), points, stored, task.live_settings.settings.flush_interval)
    return OpenCheckpoint(store, evidence, points, flusher)


@dataclass(frozen=True, slots=True)
class _TimedStore:
    """The checkpoint store, with its writes timed as a phase of the run."""

    store: CheckpointStore
    counters: RunCounters

    def write(self, snapshot: Snapshot, changed: Sequence[TablePoint], reason: FlushReason) -> None:
        with self.counters.spending(self.store.source_id, "flush"):
            self.store.write(snapshot, changed, reason)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What earlier runs have landed, but not applied.

    Attributes:
        landed_ranges: the queue of these ranges, which those of this run follow.
        earlier: the structures before the first of them.
    """

    landed_ranges: RangeQueue
    earlier: EarlierStructures


def open_backlog(spark: SparkSession, start: SourceStart, stored: StoredPoints | None) -> Backlog:
    """Read which ranges silver lacks.

    Args:
        stored: the points of the last flush.

    Raises:
        QualityError: row changes of these ranges have expired.
        LakehouseError: bronze cannot be read.
    """
    source, landed = start.source, start.landed
    landed_ranges, unapplied = RangeQueue(), _unapplied(spark, source, landed, stored)
    for batch in unapplied:
        landed_ranges.append(batch)
    # The first batch may be the mark of a position, without rows.
    is_empty = landed is None or (landed.batch == 1 and landed.begin == landed.end)
    first = unapplied[0].begin if unapplied else landed.end if landed is not None else None
    return Backlog(landed_ranges, EarlierStructures(spark, source, None if is_empty else first))


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
