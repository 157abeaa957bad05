"""Full load: the tables of a source as they are, chunk by chunk, before its log is followed.

A snapshot is a log of its own, in an epoch of its own: its files are the chunks, and bronze's newest commit says where
it is, as for any log. The binlog is relayed meanwhile, from a position before the first chunk on; it lands in the next
epoch. What of it begins before the end of the snapshot is applied in safe mode, because readers may have seen it.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from threading import Event
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import DataFrame

from dmdelta.bronze.datasource import neighbours
from dmdelta.bronze.landing import Landed, LandingSource, begin_anew, land_rows
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.engine.chunk_source import ChunkFrames
from dmdelta.engine.chunk_store import ChunkStore
from dmdelta.engine.landed_log import LandedLog
from dmdelta.engine.planned_snapshot import PlannedSnapshot
from dmdelta.engine.progress import Tally
from dmdelta.engine.relaying import Relaying
from dmdelta.engine.stop import StopRequest
from dmdelta.engine.task import Task
from dmdelta.errors import ConfigError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.history import OwnCommit, newest_own_commit
from dmdelta.logging import get_logger
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.silver.apply import ApplyRequest
from dmdelta.silver.direct import append_read
from dmdelta.source.chunk import Chunk
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.folder import locked, newest_begin
from dmdelta.source.meeting import Meeting, call, lead
from dmdelta.source.snapshot import plan_snapshot, snapshot_end

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
BATCH_ROWS = 400_000
"""One commit's share: applying the last one goes on while the next one is read."""
BATCH_CHUNKS = 256


def plan_batches(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Commits of about BATCH_ROWS rows; small tables share one."""
    return neighbours(chunks, lambda chunk: chunk.rows, BATCH_ROWS, BATCH_CHUNKS)


def by_table(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """Neighbouring chunks of the same table together."""
    return [tuple(group) for _, group in groupby(chunks, key=lambda chunk: chunk.schema)]


def shares_of(chunks: Sequence[Chunk]) -> list[tuple[str, int]]:
    """Each chunk's table and rows."""
    return [(str(chunk.schema), chunk.rows) for chunk in chunks]


def _lead(connection: "Connection[Any]", meeting: Meeting, over: Event) -> None:
    try:
        lead(connection, meeting, over.is_set)
    except BaseException:
        connection.close()  # the readers must not wait
        raise


@dataclass(frozen=True, slots=True)
class FullLoad:
    """A snapshot under way.

    Attributes:
        landed: where bronze is: at the snapshot's begin, or behind one of its chunks.
    """

    task: Task
    source: LandingSource
    endpoint: Endpoint
    store: ChunkStore
    snapshot: PlannedSnapshot
    landed: Landed

    @property
    def log_begin(self) -> Landed:
        """Where the relay begins, while the snapshot is read."""
        begin = self.snapshot.log_begin
        return Landed(0, begin, begin, self.snapshot.gtid_set or parse_gtid_set("", self.source.flavor))

    def run(self, landed_log: LandedLog, tally: Tally, stop: StopRequest) -> Landed | None:
        """Land what is missing, then mark where the log goes on; None if the stop came before.

        Raises:
            SourceError: a chunk cannot be read. Fenced: another runner of this task is at work.
        """
        landed = self.landed
        done = landed.end.chunk or 0
        there = [chunk for chunk in self.snapshot.chunks if chunk.number < done]
        missing = self.snapshot.chunks[len(there) :]
        tally.loading(shares_of(self.snapshot.chunks), shares_of(there))
        recorded: Future[None] | None = None
        with ThreadPoolExecutor(1, thread_name_prefix="record") as recorder:
            for batch in [missing] if self._together and missing else plan_batches(missing):
                if stop.requested:
                    return None
                landed, commit = (self._land_together if self._together else self._land)(batch, landed)
                landed_log.append(landed)
                tally.landed(self.source.source_id, str(landed.end))
                tally.loaded(shares_of(batch))
                if recorded is not None:
                    recorded.result()
                # Meanwhile the next one is read: a start after a crash writes down what is missing.
                recorded = recorder.submit(self.store.landed, self.snapshot, batch, commit)
                reach(CrashPoint.SNAPSHOT_BETWEEN_BATCHES)
        if recorded is not None:
            recorded.result()
        return self._follow_log(landed)

    def exact_positions(self) -> dict[tuple[str, str], Position]:
        """Where the log goes on, by (schema, table), for tables that were read exactly at one position.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        return exact_positions(self.task.spark, self.source.bronze, self.source.source_id)

    def _land(self, batch: Sequence[Chunk], landed: Landed) -> tuple[Landed, OwnCommit]:
        end = self.snapshot.behind(batch[-1])
        done = Landed(landed.batch + 1, landed.end, end, landed.gtid_set)
        big = frozenset() if self.task.spec.snapshot.bronze else self.snapshot.cut_tables
        past = [chunk for chunk in batch if chunk.schema in big]
        kept = [chunk for chunk in batch if chunk.schema not in big]
        for chunks in by_table(past):
            self._append_to_silver(chunks, done)
        shares = [(chunks, rows) for chunks, rows in ((kept, True), (past, False)) if chunks]
        frames = [self._frames.bronze_rows(chunks, rows=rows) for chunks, rows in shares]
        commit = land_rows(self.task.spark, self.source, reduce(DataFrame.unionAll, frames), done)
        log.info("chunks landed", source=self.source.source_id, chunks=len(batch), end=str(end))
        return done, commit

    @property
    def _together(self) -> bool:
        return self.task.spec.snapshot.consistency == "snapshot"

    def _land_together(self, batch: Sequence[Chunk], landed: Landed) -> tuple[Landed, OwnCommit]:
        """All chunks as they are at one position, in one commit."""
        loose = sorted({str(chunk.schema) for chunk in batch if not chunk.transactional})
        if loose:
            raise ConfigError(
                f"consistency: snapshot cannot read {', '.join(loose)}: the engine has no snapshots",
                hint="leave the table out with the block-allow-list, or use consistency: none",
            )
        done = Landed(landed.batch + 1, landed.end, self.snapshot.behind(batch[-1]), landed.gtid_set)
        meeting = Meeting(uuid4().hex, min(self.task.spec.snapshot.readers, len(batch)))
        over = Event()
        connection = open_connection(self.endpoint)
        with ThreadPoolExecutor(1, thread_name_prefix="meeting") as leader, closing(connection):
            call(connection, meeting)
            led = leader.submit(_lead, connection, meeting, over)
            try:
                frame = self._frames.bronze_rows_together(batch, meeting)
                commit = land_rows(self.task.spark, self.source, frame, done)
            finally:
                over.set()
                led.result()  # why the readers failed, if it was the leader
        log.info("chunks landed", source=self.source.source_id, chunks=len(batch), end=str(done.end))
        return done, commit

    def _append_to_silver(self, chunks: Sequence[Chunk], done: Landed) -> None:
        schema, task = chunks[0].schema, self.task
        request = ApplyRequest(
            lakehouse=task.lakehouse,
            task=task.spec.name,
            source_id=self.source.source_id,
            run=task.run,
            schema=schema.schema,
            table=schema.table,
            begin=done.begin,
            end=done.end,
            batch=done.batch,
        )
        append_read(task.spark, request, schema, self._frames.table_rows(chunks))

    @property
    def _frames(self) -> ChunkFrames:
        source = self.source
        return ChunkFrames(self.task.spark, self.endpoint, source.source_id, source.flavor, self.snapshot.epoch)

    def _follow_log(self, landed: Landed) -> Landed:
        end = snapshot_end(self.endpoint)
        begin = self.snapshot.log_begin
        safe_until = Position(begin.epoch, end.binlog_file, end.offset)
        mark = begin_anew(
            self.task.spark, self.source, landed, begin, safe_until=safe_until, gtid_set=self.snapshot.gtid_set
        )
        reach(CrashPoint.SNAPSHOT_END)
        log.info("snapshot landed", source=self.source.source_id, log=str(begin), safe_mode_until=str(safe_until))
        return mark


def open_full_load(task: Task, relaying: Relaying, source: LandingSource, landed: Landed | None) -> FullLoad | None:
    """The full load that a source needs first, begun or gone on with; None if its log is followed already.

    Args:
        landed: how far bronze is.

    Raises:
        Fenced: the task is running.
        SourceError, SourceUnavailable: the source's tables cannot be planned.
        LakehouseError: the plan of a snapshot that has begun is gone.
    """
    endpoint = relaying.task.endpoint
    if endpoint is None or not relaying.loads:
        return None
    if landed is not None and landed.end.chunk is None:
        return None
    store = ChunkStore(task.spark, task.lakehouse, task.spec.name, source.source_id, task.run)
    with locked(relaying.folder):
        store.open()
        if landed is None:
            return _begin(task, source, endpoint, store, relaying)
        snapshot = store.load(landed.end.epoch, source.flavor)
        _record_missed(task, source, store, snapshot)
    return FullLoad(task, source, endpoint, store, snapshot, landed)


def _begin(task: Task, source: LandingSource, endpoint: Endpoint, store: ChunkStore, relaying: Relaying) -> FullLoad:
    plan = plan_snapshot(endpoint, source.allow_list.wanted)
    relayed = newest_begin(relaying.folder)
    epoch = 1 + max(store.newest_epoch(), relayed.epoch if relayed else 0)
    begin = Position(epoch + 1, plan.begin.binlog_file, plan.begin.offset)
    snapshot = PlannedSnapshot(epoch, begin, plan.begin.gtid_set, plan.chunks)
    store.plan(snapshot)
    landed = begin_anew(task.spark, source, None, snapshot.begin, gtid_set=snapshot.gtid_set)
    log.info("snapshot begins", source=source.source_id, chunks=len(plan.chunks), log=str(begin))
    return FullLoad(task, source, endpoint, store, snapshot, landed)


def _record_missed(task: Task, source: LandingSource, store: ChunkStore, snapshot: PlannedSnapshot) -> None:
    """Write down what a killed run had landed and not yet written down."""
    commit = newest_own_commit(task.spark, source.bronze, source.app)
    if commit is None or commit.tag.begin == commit.tag.end:
        return
    recorded = store.newest_landed(snapshot.epoch)
    missed = [chunk for chunk in snapshot.chunks if recorded < chunk.number < (commit.tag.end.chunk or 0)]
    if missed:
        store.landed(snapshot, missed, commit)
