"""Full load: reads the tables of a source, chunk by chunk, before its log is applied.

A snapshot is a log with its own epoch: its files are the chunks, and bronze's newest commit records its position, as
for any log. Meanwhile the binlog is relayed, from a position before the first chunk; it lands in the next epoch. Its
part before the end of the snapshot is applied in safe mode, because readers may have seen it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame

from dmdelta.bronze.landing import land_rows, start_epoch
from dmdelta.bronze.progress import LandedRange, landing_app
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.context import SourceContext
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.snapshot.chunk_source import ChunkFrames
from dmdelta.engine.snapshot.consistent import land_consistent
from dmdelta.engine.snapshot.plan import ChunkBatch, PlannedSnapshot, by_table, log_changed, plan_batches, shares_of
from dmdelta.engine.snapshot.store import ChunkStore, record_missed
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import ServerChanged
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.history import OwnCommit, newest_own_commit
from dmdelta.logging import get_logger
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.direct_load import append_read, reached
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.source.connection import START_OVER
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.relay_dir import locked, newest_begin
from dmdelta.source.server import ServerPosition
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.planner import plan_snapshot, snapshot_end

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FullLoad:
    """A snapshot in progress.

    Attributes:
        landed: the end of bronze: at the snapshot's begin, or after one of its chunks.
        folder: of the relay.
    """

    task: Task
    source: SourceContext
    endpoint: Endpoint
    store: ChunkStore
    snapshot: PlannedSnapshot
    landed: LandedRange
    folder: Path

    @property
    def log_begin(self) -> LandedRange:
        """Where the relay starts, while the snapshot is read."""
        begin = self.snapshot.log_begin
        return LandedRange(0, begin, begin, self.snapshot.gtid_set or parse_gtid_set("", self.source.flavor))

    def run(self, landed_ranges: RangeQueue, counters: RunCounters, stop: StopRequest) -> LandedRange | None:
        """Land what is missing, then mark where the log resumes; None if the stop was requested before.

        Raises:
            ServerChanged: the address leads to another server than the one on which the load was planned.
            SourceError: a chunk cannot be read. Fenced: another runner of this task is active.
        """
        landed = self.landed
        done = landed.end.chunk or 0
        finished = [chunk for chunk in self.snapshot.chunks if chunk.number < done]
        missing = self.snapshot.chunks[len(finished) :]
        counters.loading(shares_of(self.snapshot.chunks), shares_of(finished))
        recorded: Future[None] | None = None
        shares = self._shares(missing)
        with self._bypassing_bronze(shares) as passed, ThreadPoolExecutor(1, thread_name_prefix="record") as recorder:
            for share, past in zip(shares, passed, strict=True):
                if stop.requested:
                    return None
                past.result()
                commit = self._land(share)
                landed = share.landed
                if share is shares[-1] or share.kept:
                    landed_ranges.append(landed)  # a share that bypasses bronze is already in silver
                counters.landed(self.source.source_id, str(landed.end))
                counters.loaded(shares_of(share.chunks))
                if recorded is not None:
                    recorded.result()
                # The next share is read meanwhile: after a crash the next start records what is missing.
                recorded = recorder.submit(self.store.landed, self.snapshot, share.chunks, commit)
                reach(CrashPoint.SNAPSHOT_BETWEEN_BATCHES)
        if recorded is not None:
            recorded.result()
        mark = self._follow_log(landed)
        landed_ranges.append(mark)  # without it, an idle source would stay behind the beginning of its log
        return mark

    def _shares(self, missing: Sequence[Chunk]) -> list[ChunkBatch]:
        """The shares of the snapshot, one per commit, in order."""
        landed, shares = self.landed, list[ChunkBatch]()
        # Shards of a merged table write to it in turns, which only appliers take.
        rules = self.task.rules(self.source.source_id)
        routes = {schema: rules.route(*schema.name) for schema in self.snapshot.cut_tables}
        # Rows with quality checks are read more than once, which only bronze supports.
        judged = self.task.suites.guards
        big = frozenset(schema for schema, to in routes.items() if not to.merged and not judged(to.name))
        if self.task.spec.snapshot.bronze:
            big = frozenset()
        for batch in [missing] if self._together and missing else plan_batches(missing, big):
            landed = LandedRange(landed.batch + 1, landed.end, self.snapshot.behind(batch[-1]), landed.gtid_set)
            kept = [chunk for chunk in batch if chunk.schema not in big]
            shares.append(ChunkBatch(batch, landed, kept, [chunk for chunk in batch if chunk.schema in big]))
        return shares

    @contextmanager
    def _bypassing_bronze(self, shares: Sequence[ChunkBatch]) -> Iterator[list[Future[None]]]:
        """Append the rows that bypass bronze to silver, share by share, before they land: silver's commits prove it."""
        ahead = ThreadPoolExecutor(1, thread_name_prefix="past-bronze")
        done: dict[TableSchema, Position | None] = {}
        try:
            yield [ahead.submit(self._append_to_silver, share, done) for share in shares]
        finally:
            ahead.shutdown(cancel_futures=True)

    def exact_positions(self) -> dict[tuple[str, str], Position]:
        """Where the log resumes, by (schema, table), for tables that were read at one exact position.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        if not self._together and not any(chunk.is_exact for chunk in self.snapshot.chunks):
            return {}
        return exact_positions(self.task.spark, self.source.bronze, self.source.source_id)

    def _land(self, share: ChunkBatch) -> OwnCommit:
        if self._together:
            return land_consistent(self.task, self.source, self._frames, share)
        parts = [(chunks, rows) for chunks, rows in ((share.kept, True), (share.past, False)) if chunks]
        frames = [self._frames.bronze_rows(chunks, rows=rows) for chunks, rows in parts]
        commit = land_rows(self.task.spark, self.source, reduce(DataFrame.unionAll, frames), share.landed)
        log.info("chunks landed", source=self.source.source_id, chunks=len(share.chunks), end=str(share.landed.end))
        return commit

    @property
    def _together(self) -> bool:
        return self.task.spec.snapshot.consistency == "snapshot"

    def _append_to_silver(self, share: ChunkBatch, done: dict[TableSchema, Position | None]) -> None:
        task, landed = self.task, share.landed
        for chunks in by_table(share.past):
            schema = chunks[0].schema
            request = ApplyRequest(
                context=task.silver_context(self.source.source_id, self.source.flavor, {}, Coordination()),
                schema=schema.schema,
                table=schema.table,
                begin=landed.begin,
                end=landed.end,
                batch=landed.batch,
            )
            if schema not in done:
                done[schema] = reached(task.spark, request, schema)
            append_read(task.spark, request, schema, self._frames.table_rows(chunks), done[schema])

    @property
    def _frames(self) -> ChunkFrames:
        source, snapshot = self.source, self.snapshot
        return ChunkFrames(
            self.task.spark, self.endpoint, source.source_id, source.flavor, snapshot.epoch, snapshot.server_uuid
        )

    def log_end(self) -> ServerPosition:
        """The current end of the log for which the load was planned.

        Raises:
            ServerChanged: the address, or the relay, follows another log: positions of the plan mean nothing there.
            SourceUnavailable, SourceError: the server does not answer.
        """
        end = snapshot_end(self.endpoint)
        changed = log_changed(self.snapshot, end.server_uuid, newest_begin(self.folder))
        if changed is not None:
            raise ServerChanged(f"the full load of {self.source.source_id} cannot continue: {changed}", hint=START_OVER)
        return end

    def _follow_log(self, landed: LandedRange) -> LandedRange:
        end = self.log_end()
        begin = self.snapshot.log_begin
        safe_until = Position(begin.epoch, end.binlog_file, end.offset)
        mark = start_epoch(
            self.task.spark, self.source, landed, begin, safe_until=safe_until, gtid_set=self.snapshot.gtid_set
        )
        reach(CrashPoint.SNAPSHOT_END)
        log.info("snapshot landed", source=self.source.source_id, log=str(begin), safe_mode_until=str(safe_until))
        return mark


def open_full_load(
    task: Task, relaying: Relaying, source: SourceContext, landed: LandedRange | None
) -> FullLoad | None:
    """The full load that a source needs first, started or resumed; None if its log is already applied.

    Args:
        landed: the end of bronze.

    Raises:
        Fenced: the task is running.
        ServerChanged: a started load was planned on another server.
        SourceError, SourceUnavailable: the source's tables cannot be planned.
        LakehouseError: the plan of a started snapshot is missing.
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
        commit = newest_own_commit(task.spark, source.bronze, landing_app(source.task, source.source_id))
        if commit is not None and commit.tag.begin != commit.tag.end:
            record_missed(store, snapshot, commit)
    load = FullLoad(task, source, endpoint, store, snapshot, landed=landed, folder=relaying.folder)
    load.log_end()  # before the relay follows another server
    return load


def _begin(task: Task, source: SourceContext, endpoint: Endpoint, store: ChunkStore, relaying: Relaying) -> FullLoad:
    plan = plan_snapshot(endpoint, source.rules.wanted)
    relayed = newest_begin(relaying.folder)
    epoch = 1 + max(store.newest_epoch(), relayed.epoch if relayed else 0)
    begin = Position(epoch + 1, plan.begin.binlog_file, plan.begin.offset)
    snapshot = PlannedSnapshot(epoch, begin, plan.begin.gtid_set, plan.chunks, plan.server.uuid)
    store.plan(snapshot)
    landed = start_epoch(task.spark, source, None, snapshot.begin, gtid_set=snapshot.gtid_set)
    log.info("snapshot started", source=source.source_id, chunks=len(plan.chunks), log=str(begin))
    return FullLoad(task, source, endpoint, store, snapshot, landed=landed, folder=relaying.folder)
