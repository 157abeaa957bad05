"""Ad-hoc snapshots: tables that are read while the log of the others is applied.

They are taken of tables that the block-allow-list selects later, and of tables that an operator requests. Their chunks
land in bronze, in an epoch below 0: older than any log. Meanwhile the appliers pause these tables. Then each silver
table is overwritten in one commit, which records where its log resumes, and catches up with the others.

After a crash at any point, the plan in dm_meta and bronze's newest commit determine what is missing.
"""

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.schema_rows import structure_rows
from dmdelta.bronze.watermarks import exact_positions, known_tables
from dmdelta.changelog.context import SourceContext
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.engine.apply.scheduler import TableScheduler
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.repeated import RepeatedStructures
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.snapshot.chunk_source import ChunkFrames
from dmdelta.engine.snapshot.plan import LAST_CHUNK, PlannedSnapshot, log_changed, plan_batches, shares_of
from dmdelta.engine.snapshot.store import ChunkStore, record_missed
from dmdelta.engine.task.task import Task
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.errors import QualityError, SchemaError, ServerChanged, SourceError, StructureChanged
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.commits import CommitTag, append
from dmdelta.lakehouse.history import OwnCommit, newest_own_commit
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.history.reload import ReloadRequest, reload_table
from dmdelta.sink.plan.reload import AdHocState, Reload
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.relay_dir import newest_begin
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.planner import SnapshotPlan, plan_snapshot, snapshot_end

log = get_logger(__name__)
WAIT_SECONDS = 0.5
POLL_SECONDS = 10.0
"""How often a running task polls for requests."""
NO_SUCH_TABLE = 1146
"""The server's error number."""
SWITCHED = "source switched to another log"


@dataclass(slots=True)
class AdHocSnapshots:
    """The ad-hoc snapshots of one source, one after the other. Has its own session.

    Attributes:
        landed: where bronze ended when the run began; None: nothing had landed.
        joining: tables that were selected since the last run.
        repeated: to be notified of the structures that a snapshot writes into the log.
        feed: what the sink must wait for, and which rows it gets.
        _deferred: requests that are left to the next run.
    """

    task: Task
    source: SourceContext
    relaying: Relaying
    store: ChunkStore
    scheduler: TableScheduler
    counters: RunCounters
    landed: Position | None
    joining: frozenset[TableName]
    repeated: RepeatedStructures = field(default_factory=RepeatedStructures)
    spark: SparkSession = field(init=False)
    endpoint: Endpoint = field(init=False)
    feed: ReloadFeed = field(default_factory=ReloadFeed)
    _deferred: frozenset[str] = frozenset()
    _requested: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.spark = clone_session(self.task.spark)
        endpoint = self.relaying.task.endpoint
        assert endpoint is not None, "an archive has no tables to read"
        self.endpoint = endpoint

    def follow(self, stop: StopRequest) -> None:
        """Take the requested snapshots until the stop is requested."""
        try:
            while not stop.requested:
                self.run(stop)
                until = time.monotonic() + POLL_SECONDS
                while not stop.requested and time.monotonic() < until and not self._requested.wait(WAIT_SECONDS):
                    pass
                self._requested.clear()
        finally:
            self.feed.close()

    def wake(self) -> None:
        """Look for requests now."""
        self._requested.set()

    def run(self, stop: StopRequest) -> None:
        """Finish the current snapshot and take those requested now, unless the stop is requested.

        Raises:
            SourceError, SourceUnavailable: the source cannot be read.
            LakehouseError, Fenced: bronze or silver cannot be written.
        """
        while not stop.requested:
            awaited = self.store.awaited()
            if awaited.epoch is not None:
                snapshot = self.store.load(awaited.epoch, self.source.flavor)
            else:
                planned = self._plan(awaited.requests, stop)
                if planned is None:
                    return
                snapshot = planned
            self._take_snapshot(snapshot, stop)

    def interrupt(self) -> None:
        """Cancel the current work."""
        cancel_jobs(self.spark)

    def _plan(self, requests: Mapping[str, TableName], stop: StopRequest) -> PlannedSnapshot | None:
        requests = {request: name for request, name in requests.items() if request not in self._deferred}
        names = {*self.joining, *requests.values()}
        if not names:
            return None
        self.store.open()
        self.feed.plan(names)
        self.scheduler.pause_tables(names)
        located = self._plan_behind_landed(names, stop)
        if located is None:
            return None
        plan, begin = located
        epoch = self.store.next_ad_hoc_epoch()
        snapshot = PlannedSnapshot(epoch, begin, plan.begin.gtid_set, plan.chunks, plan.server.uuid)
        missing = names - snapshot.tables
        if missing:
            log.warning("requested tables do not exist", tables=sorted(".".join(name) for name in missing))
            self.scheduler.resume_tables(dict.fromkeys(missing, ORIGIN))
        self.store.plan(snapshot, requests)
        self.feed.begin(snapshot.tables, begin, missing)
        self.joining = frozenset()
        log.info("ad-hoc snapshot started", source=self.source.source_id, chunks=len(plan.chunks), log=str(begin))
        return snapshot

    def _plan_behind_landed(
        self, names: Collection[TableName], stop: StopRequest
    ) -> tuple[SnapshotPlan, Position] | None:
        """A plan whose position is in the relayed epoch, after everything applied before the tables paused."""
        is_reported = False
        while not stop.requested:
            relayed = newest_begin(self.relaying.folder)
            if relayed is not None and relayed.server_uuid != snapshot_end(self.endpoint).server_uuid:
                if not is_reported:
                    log.warning(
                        "the address leads to another server than the relay: the snapshot waits",
                        source=self.source.source_id,
                        fix="restart the task, so that the relay follows that server",
                    )
                is_reported = True
                stop.wait(POLL_SECONDS)
                continue
            plan = plan_snapshot(self.endpoint, lambda schema, table: (schema, table) in names)
            if relayed is not None and relayed.server_uuid == plan.server.uuid:
                begin = Position(relayed.epoch, plan.begin.binlog_file, plan.begin.offset)
                if begin >= max(self.landed or ORIGIN, self.scheduler.reached or ORIGIN):
                    return plan, begin
            stop.wait(WAIT_SECONDS)
        return None

    def _take_snapshot(self, snapshot: PlannedSnapshot, stop: StopRequest) -> None:
        self.store.open()  # a plan of an older release may be all that it has
        self.feed.begin(snapshot.tables, snapshot.log_begin)
        self.scheduler.pause_tables(snapshot.tables)
        commit = self._newest_commit(snapshot)
        if commit is not None:
            record_missed(self.store, snapshot, commit)
        done = (commit.tag.end.chunk or 1) - 1 if commit else 0
        self.counters.loading(shares_of(snapshot.chunks), shares_of(snapshot.chunks[:done]))
        if not self._land_all(snapshot, snapshot.chunks[done:], stop):
            return
        end = snapshot_end(self.endpoint)
        relayed = newest_begin(self.relaying.folder)
        if relayed is None or log_changed(snapshot, end.server_uuid, relayed) is not None:
            self._plan_again(snapshot, SWITCHED)
            return
        safe_until = Position(snapshot.log_begin.epoch, end.binlog_file, end.offset)
        epochs = (snapshot.epoch, snapshot.log_begin.epoch)
        exact = exact_positions(self.spark, self.source.bronze, self.source.source_id, epochs)
        resume_position = self._reload(snapshot, exact, safe_until, structures_written=done >= LAST_CHUNK)
        reach(CrashPoint.SNAPSHOT_END)
        failed = snapshot.tables - resume_position.keys()
        applied = [
            Reload(name, snapshot.epoch, at, None if name in exact else safe_until)
            for name, at in resume_position.items()
        ]
        self._deferred |= self.store.end(snapshot, failed, applied)
        self.feed.end(applied, requeued=failed)
        self.scheduler.resume_tables(resume_position)
        log.info(
            "ad-hoc snapshot applied", source=self.source.source_id, tables=len(resume_position), log=str(safe_until)
        )

    def _land_all(self, snapshot: PlannedSnapshot, chunks: Sequence[Chunk], stop: StopRequest) -> bool:
        """Land chunks; False if the stop was requested before the end, or the plan fits the source no longer."""
        for batch in plan_batches(chunks):
            if stop.requested:
                return False
            try:
                self._land(snapshot, batch)
            except ServerChanged:
                self._plan_again(snapshot, SWITCHED)
                return False
            except SourceError as error:
                if error.context.get("code") != NO_SUCH_TABLE and not isinstance(error, StructureChanged):
                    raise
                self._plan_again(snapshot, "a table was dropped, renamed or changed before it was read")
                return False
        return True

    def _plan_again(self, snapshot: PlannedSnapshot, why: str) -> None:
        """Give up a snapshot and request its tables again: the next plan has those that exist then."""
        log.warning("ad-hoc snapshot is planned again", source=self.source.source_id, why=why)
        self.store.end(snapshot, requeue=snapshot.tables)
        self.feed.end((), requeued=snapshot.tables)

    def _newest_commit(self, snapshot: PlannedSnapshot) -> OwnCommit | None:
        """Bronze's newest commit of this snapshot: of its last landed chunk, or of its structures."""
        commit = newest_own_commit(self.spark, self.source.bronze, self._app)
        return commit if commit and commit.tag.end.epoch == snapshot.epoch else None

    def _land(self, snapshot: PlannedSnapshot, batch: Sequence[Chunk]) -> None:
        source = self.source
        frames = ChunkFrames(
            self.spark, self.endpoint, source.source_id, source.flavor, snapshot.epoch, snapshot.server_uuid
        )
        tag = self._tag(snapshot, batch[0].number, batch[-1].number)
        commit = append(self.spark, frames.bronze_rows(batch), source.bronze, tag)
        self.counters.loaded(shares_of(batch))
        self.store.landed(snapshot, batch, commit)
        reach(CrashPoint.SNAPSHOT_BETWEEN_BATCHES)

    def _reload(
        self,
        snapshot: PlannedSnapshot,
        exact: Mapping[TableName, Position],
        safe_until: Position,
        *,
        structures_written: bool,
    ) -> dict[TableName, Position]:
        """Overwrite each silver table; returns where its log resumes. A shard that does not fit its merged table stops.

        Args:
            exact: the positions of the tables that were read at one position.
            structures_written: by a run that was killed.
        """
        schemas = {chunk.schema.name: chunk.schema for chunk in snapshot.chunks}
        resume_position = {name: exact.get(name, snapshot.log_begin) for name in schemas}
        self.repeated.written(resume_position)
        if not structures_written:
            self._write_structures(snapshot, [(schemas[name], position) for name, position in resume_position.items()])
        for name, schema in schemas.items():
            until = None if name in exact else safe_until
            request = ReloadRequest(self.scheduler.context, schema, snapshot.epoch, resume_position[name], until)
            if not self._reload_table(name, request):
                del resume_position[name]
        return resume_position

    def _reload_table(self, name: TableName, request: ReloadRequest) -> bool:
        """Overwrite a silver table; False if it stops for now: other shards may yet change their structure to match."""
        scheduler = self.scheduler
        spark = scheduler.tables.session()
        try:
            with scheduler.tables.turns(spark, [name]):
                done = reload_table(spark, request)
        except (SchemaError, QualityError) as error:
            scheduler.stop_tables([name], error, reload=lambda: self._reload_table(name, request))
            return False
        scheduler.tables.record_failures(name, request.resume_position, done.evaluated, done.failures)
        return True

    def _write_structures(self, snapshot: PlannedSnapshot, structures: Iterable[tuple[TableSchema, Position]]) -> None:
        """Write the structures of the tables at the position where their log resumes to bronze."""
        now = datetime.now(timezone.utc)
        rows = structure_rows(self.spark, self.source.bronze, self.source.source_id, structures, now)
        append(self.spark, rows, self.source.bronze, self._tag(snapshot, LAST_CHUNK, LAST_CHUNK))

    @property
    def _app(self) -> str:
        return f"dmdelta:{self.source.task}:{self.source.source_id}:ad-hoc"

    def _tag(self, snapshot: PlannedSnapshot, first: int, last: int) -> CommitTag:
        source = self.source
        begin, end = (Position.of_chunk(snapshot.epoch, number) for number in (first, last + 1))
        return CommitTag(
            app=self._app,
            version=snapshot.version(last),
            task=source.task,
            source=source.source_id,
            run=source.run,
            begin=begin,
            end=end,
        )


def open_feed(store: ChunkStore, joining: frozenset[TableName], flavor: Flavor) -> ReloadFeed:
    """The feed of a source's sink, with what earlier runs have left. Creates the table of snapshots.

    Raises:
        LakehouseError: the plans cannot be read.
    """
    store.open()
    awaited = store.awaited()
    started = store.load(awaited.epoch, flavor) if awaited.epoch is not None else None
    return ReloadFeed(
        AdHocState(
            awaited=joining | awaited.tables,
            begin=started.log_begin if started is not None else None,
            reading=awaited.begun,
            reloads=tuple(store.applied()),
        )
    )


def joining_tables(
    spark: SparkSession, source: SourceContext, relaying: Relaying, store: ChunkStore
) -> frozenset[TableName]:
    """Selected tables for which neither a snapshot nor the log has any rows yet.

    Raises:
        SourceError, SourceUnavailable: the source does not answer.
        LakehouseError: bronze or the plans cannot be read.
    """
    if not relaying.loads:
        return frozenset()
    unknown = {schema.name for schema in relaying.read_catalog()} - store.planned_tables()
    if not unknown:
        return frozenset()
    return frozenset(unknown - known_tables(spark, source.bronze, source.source_id, unknown))
