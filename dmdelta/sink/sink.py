"""The sink of one source: ranges of bronze in, an executed and recorded target out."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import DmdeltaError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.ending import Ending
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.purger import Purger
from dmdelta.sink.execute.slice_executor import SliceExecution
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.metrics import SinkMetrics
from dmdelta.sink.plan.checkpoint import PushedPoint
from dmdelta.sink.plan.ddl import StatementContext, TargetStatement, plan_statement
from dmdelta.sink.plan.safe_mode import SafeMode
from dmdelta.sink.read.change_reader import SliceReader, TableChanges
from dmdelta.sink.read.slices import Slice, Statement, cut, epochs, places, plan_slices
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.shards import Outcome, SinkShards
from dmdelta.sink.target.tables import Tables

log = get_logger(__name__)
SliceChanges = list[list[TableChanges]]


@dataclass(slots=True)
class Sink:
    """A running sink of one source; created by `open_sink`. One thread calls `apply`, then `end`.

    Attributes:
        proven: the records list everything executed after the checkpoint; otherwise they will once safe mode is over.
        position: the end of the newest source transaction that was handed to the workers.
        about_to: the statement at `position` that an earlier run may have executed up to this part; None: none.
        read_at: where the log resumes for tables that a full load has read at one exact position.
        shards: decides on statements of shards; None: each is executed as it is.
        held: the shards that wait, with the position of the statement; shared with the reader.
    """

    source: SourceContext
    settings: SinkSettings
    reader: SliceReader
    tables: Tables
    dispatcher: Dispatcher
    execution: SliceExecution
    flusher: Flusher
    progress: Progress
    purger: Purger
    executed: ExecutedEvents
    safe: SafeMode
    proven: bool
    position: Position | None
    about_to: int | None = None
    read_at: Mapping[TableName, Position] = field(default_factory=dict)
    shards: SinkShards | None = None
    held: dict[TableName, Position] = field(default_factory=dict)
    skipped: int = 0
    _warned: set[str] = field(default_factory=set)
    _began: float = field(default_factory=time.monotonic)
    _flushed_at: float = field(default_factory=time.monotonic)

    def apply(
        self,
        begin: Position,
        end: Position,
        stopping: Callable[[], bool],
        safe_until: Position | None = None,
    ) -> bool:
        """Execute what lies in [begin, end) after the sink's position; False if stopped before the end.

        Args:
            stopping: called at each transaction boundary.
            safe_until: changes before it may already have been executed, or a full load may have seen them.

        Raises:
            DmdeltaError: the target, bronze or the rules stop the sink.
        """
        begin = max(begin, self.position) if self.position is not None else begin
        for first, last in epochs(begin, end):
            slices = plan_slices(self.reader.log.survey(first, last))
            slices = cut(slices, self.source.rules.operators, self.read_at)
            for part, changes, flushes in self._read_ahead(slices):
                self._execute(part, changes, safe_until)
                if flushes:
                    self._flush()
                if part.boundary and stopping():
                    return False
        return True

    def resume_shards(self) -> None:
        """Let the held shards continue that need not wait any longer: their log is read again from their statement on.

        Call it between ranges. Raises as `apply`.
        """
        for name in self.shards.released(self.held) if self.shards is not None else ():
            at = self.held[name]
            with _placed(at):
                self.dispatcher.drain(self._all_executed())
                statement = self.reader.log.statement_at(at)
                if statement is None or self._resumes(name, statement):
                    self._resync(name, self.held[name])

    def end(self, *, orderly: bool) -> bool:
        """Bring the target to a transaction boundary, write the checkpoint and stop all threads.

        Args:
            orderly: no error occurred.

        Returns:
            Whether the target is at a boundary: False after an error or a timeout.
        """
        point = PushedPoint(self.position, self.position) if self.position is not None else None
        try:
            return Ending(self.dispatcher, self.flusher, self.progress).end(point, orderly=orderly)
        finally:
            self.purger.end()
            self.tables.close()

    def metrics(self) -> SinkMetrics:
        """The current counters."""
        snapshots, causality = self.dispatcher.snapshots, self.dispatcher.causality
        mark, counts = snapshots.newest_ready, causality.counts
        # A statement's checkpoint, or that of an earlier run, has no snapshot: what lies before it was executed.
        flushed = self.flusher.flushed.position if self.flusher.flushed else None
        ready = _newest(mark.at.position if mark and mark.at else None, flushed)
        pushed = snapshots.newest_pushed
        return SinkMetrics(
            source_id=self.source.source_id,
            pushed=_newest(pushed.position if pushed else None, ready),
            ready=ready,
            flushed=flushed,
            keys_added=counts.added,
            keys_purged=counts.purged,
            keys_reset=counts.reset,
            keys=counts.size,
            keys_waiting=causality.waiting(mark.id) if mark else 0,
            resets=counts.resets,
            queued=tuple(worker.queue.qsize() for worker in self.dispatcher.workers),
            workers=tuple(worker.counts for worker in self.dispatcher.workers),
            flushes=self.flusher.counts.flushes,
            flush_seconds=self.flusher.counts.seconds,
            ready_spans=snapshots.spans,
            flushed_spans=self.flusher.counts.spans,
            skipped=self.skipped,
        )

    def _read_ahead(self, slices: list[Slice]) -> Iterator[tuple[Slice, SliceChanges, bool]]:
        """Yields each slice with its changes, and whether a synchronous flush follows it.

        The next slice is read ahead, but not across a statement or such a flush: DM blocks reading then, too.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="sink-slice") as pool:
            ahead: Future[SliceChanges] | None = None
            for number, part in enumerate(slices):
                with _placed(part.begin):
                    changes = ahead.result() if ahead is not None else self.reader.read(part)
                flushes = self.settings.synchronous and part.then is None and self._is_flush_due()
                following = slices[number + 1] if number + 1 < len(slices) else None
                continues = following is not None and part.then is None and not flushes
                ahead = pool.submit(self.reader.read, following) if following and continues else None
                yield part, changes, flushes

    def _execute(self, part: Slice, changes: SliceChanges, safe_until: Position | None) -> None:
        self.skipped += sum(one.skipped for group in changes for one in group)
        repeated = self.safe.is_on(part.begin, time.monotonic() - self._began)
        reads = any(Op.READ.value in rows.ops for rows in part.rows)
        self._join_shards(part)
        loaded = safe_until is not None and part.begin < safe_until
        careful = [
            group for group in changes if self._needs_safe_mode(group, repeated=repeated, reads=reads, loaded=loaded)
        ]
        if careful and self.execution.ordered:
            careful = changes
        plain = [group for group in changes if group not in careful]
        if not reads:
            self._warn_of_keyless(careful)
        self._hand_over(part, changes)
        for groups, safe in ((plain, False), (careful, True)):
            if groups:
                style = Style(self.settings.multiple_rows, safe, self.settings.server.foreign_key_checks)
                self.dispatcher.enter(
                    Scope(part.begin.epoch, part.begin.seq, part.end.seq - 1, style, places(part.begin))
                )
                self.execution.execute(groups)
        if part.boundary:
            self.position = part.end
            self.executed.forget(part.end.epoch, part.end.seq)
        self.dispatcher.push(PushedPoint(self.position, part.end))
        self._check_proof()
        if part.then is not None:
            with _placed(part.then.position):
                self._follow(part.then, loaded=safe_until is not None and part.then.position < safe_until)

    def _hand_over(self, part: Slice, changes: SliceChanges) -> None:
        """From now on changes of the slice may be executed: the exit point is raised first."""
        self.progress.raise_exit_point(part.end)
        for one in (one for group in changes for one in group):
            self.progress.add_table(one.plan.source, one.plan.shape.table, part.begin)

    def flush_if_due(self) -> None:
        """With `flush: sync`, write the checkpoint if the interval has passed and it would be newer.

        `apply` does so between slices, of which an idle source has none. Raises as `apply`.
        """
        flushed = self.flusher.flushed
        newer = self.position is not None and (flushed is None or self.position > flushed.position)
        if self.settings.synchronous and newer and self._is_flush_due():
            self._flush()

    def _is_flush_due(self) -> bool:
        return time.monotonic() - self._flushed_at > self.flusher.interval

    def _flush(self) -> None:
        """A synchronous flush: after the workers have executed everything dispatched."""
        self.dispatcher.drain(self.dispatcher.snapshots.newest_pushed)
        self.flusher.flush_ready()
        self._flushed_at = time.monotonic()

    def _needs_safe_mode(self, group: Sequence[TableChanges], *, repeated: bool, reads: bool, loaded: bool) -> bool:
        """Whether changes of a table may already be in the target, so that they are written in safe mode."""
        plan = group[0].plan
        repeated, keyless = repeated and plan.schema.name not in self.tables.fresh, plan.shape.keyless
        if reads:
            # A unique value that moves meanwhile may be in two chunks, and a child may be read before its parent.
            return repeated or self.execution.ordered or (len(plan.keys) > 1 and not keyless)
        if all(one.plan.source in self.read_at for one in group):
            loaded = False
        return repeated or (loaded and not (keyless and plan.schema.name in self.tables.fresh))

    def _warn_of_keyless(self, careful: SliceChanges) -> None:
        """Safe mode needs keys to find rows: warn once for each table without one."""
        for table in {group[0].plan.shape.table for group in careful if group[0].plan.shape.keyless} - self._warned:
            log.warning("safe mode on a table without a key: rows may be duplicated", table=table)
            self._warned.add(table)

    def _check_proof(self) -> None:
        """Beyond everything that an unknown run may have executed, the records are complete."""
        flushed = self.flusher.flushed
        if self.proven or flushed is None:
            return
        if not self.safe.is_unknown(flushed.position, time.monotonic() - self._began):
            self.flusher.mark_whole()
            self.proven = True

    def _follow(self, statement: Statement, *, loaded: bool) -> None:
        """Execute a statement alone: everything before it is in the target, nothing after it.

        Args:
            loaded: a full load may have read the tables after the statement.
        """
        at = statement.position
        self.dispatcher.drain(PushedPoint(at, at))
        following = _following(at, statement)
        self.progress.raise_exit_point(following)
        planned = self._planned(statement)
        if not self._follow_in_shards(statement, [one.sql for one in planned if one.merged]):
            planned = [one for one in planned if not one.merged]
        for number, one in enumerate(planned):
            doubt = loaded or (self.about_to is not None and number <= self.about_to)
            if self.about_to is not None and number < self.about_to:
                continue
            self._change(one, at, number, in_doubt=doubt)
        self.about_to = None
        self.position = following
        self._write_point(following)
        self._flushed_at = time.monotonic()

    def _planned(self, statement: Statement) -> list[TargetStatement]:
        at = statement.position
        context = StatementContext(
            self.source.rules, lambda table: self.reader.log.statements_on(table, at), self.settings.server.tidb
        )
        operator = self.source.rules.operators.get(at)
        texts = operator.followed(statement.text) if operator is not None else (statement.text,)
        return [one for text in texts if text for one in plan_statement(text, statement.schema, context)]

    def _follow_in_shards(self, statement: Statement, texts: Sequence[str]) -> bool:
        """Let the shards agree on a statement; False: what it does to merged tables is done, or waits."""
        as_it_is = True
        for name in statement.tables if self.shards is not None else ():
            assert self.shards is not None
            if not self.shards.coordinates(name):
                continue
            outcome = Outcome.WAITS
            if name not in self.held:
                # First: once the columns change, rows before the statement cannot be read again.
                in_doubt = (statement.position, self.about_to) if self.about_to is not None else None
                self._write_point(statement.position, in_doubt)
                outcome = self.shards.follow(name, statement, texts, self.tables)
                if outcome is Outcome.WAITS:
                    self._hold(name, statement.position)
            as_it_is = as_it_is and outcome is Outcome.OWN
        return as_it_is

    def _hold(self, name: TableName, at: Position) -> None:
        log.info("shard waits in the sink", source=self.source.source_id, shard=".".join(name), at=str(at))
        self.held[name] = at
        self.progress.hold(name, at)

    def _join_shards(self, part: Slice) -> None:
        """The structure of a shard is known once it has rows."""
        shards = self.shards
        if shards is None:
            return
        new = {one.name: one.version for one in part.rows if one.version is not None and one.name not in self.held}
        for name, version in new.items():
            if shards.coordinates(name) and not shards.is_known(name):
                shards.joins(name, self.reader.log.structures({version}, part.begin)[version])

    def _resumes(self, name: TableName, statement: Statement) -> bool:
        """Execute the statement that a shard has reached again, and record that; False: it waits."""
        assert self.shards is not None, "only a shard is held"
        planned = [one for one in self._planned(statement) if one.merged]
        if self.held[name] != statement.position:
            self._hold(name, statement.position)
            self._write_resync()
        outcome = self.shards.follow(name, statement, [one.sql for one in planned], self.tables)
        for one in planned if outcome is Outcome.OWN else ():
            if one.needs is None or self.tables.has(one.needs):
                self._run(one, in_doubt=True)
        waits = outcome is Outcome.WAITS
        self._hold(name, statement.position if waits else _following(statement.position, statement))
        self._write_resync()
        return not waits

    def _resync(self, name: TableName, begin: Position) -> None:
        """Execute what was held of a shard, in safe mode, up to where the other tables are or its next wait."""
        assert self.position is not None, "a held shard has a checkpoint"
        log.info("shard resumed in the sink", source=self.source.source_id, shard=".".join(name), at=str(begin))
        reader = self.reader.resync()
        for first, last in epochs(begin, self.position):
            for part in cut(plan_slices(reader.log.survey(first, last)), self.source.rules.operators, {}):
                own = replace(part, rows=tuple(rows for rows in part.rows if rows.name == name))
                self._execute_again(own, reader.read(own))
                if part.then is not None and name in part.then.tables:
                    self.dispatcher.drain(self._all_executed())
                    if not self._resumes(name, part.then):
                        return
        self.dispatcher.drain(self._all_executed())
        reach(CrashPoint.SINK_RESYNCED)
        self.held.pop(name)
        self.progress.release(name)
        self._write_resync()

    def _execute_again(self, part: Slice, changes: SliceChanges) -> None:
        if not changes:
            return
        self._warn_of_keyless(changes)
        for one in (one for group in changes for one in group):
            self.progress.add_table(one.plan.source, one.plan.shape.table, part.begin)
        style = Style(self.settings.multiple_rows, True, self.settings.server.foreign_key_checks)
        self.dispatcher.enter(Scope(part.begin.epoch, part.begin.seq, part.end.seq - 1, style, places(part.begin)))
        self.execution.execute(changes)
        self.dispatcher.push(self._all_executed())

    def _write_resync(self) -> None:
        """The checkpoint where it is, with the shards' new points."""
        point = self._all_executed()
        about_to = (point.tables, self.about_to) if self.about_to is not None else None
        self._write_point(point.tables, about_to)
        self._flushed_at = time.monotonic()

    def _all_executed(self) -> PushedPoint:
        assert self.position is not None, "a held shard has a checkpoint"
        return PushedPoint(self.position, self.position)

    def _change(self, one: TargetStatement, at: Position, number: int, *, in_doubt: bool) -> None:
        if one.needs is not None and not self.tables.has(one.needs):
            log.info("statement skipped: the table does not exist yet", table=".".join(one.needs), position=str(at))
            return
        self._write_point(at, about_to=(at, number))
        self._run(one, in_doubt=in_doubt)
        log.info("statement executed", position=str(at))

    def _run(self, one: TargetStatement, *, in_doubt: bool) -> None:
        reach(CrashPoint.SINK_BEFORE_STATEMENT)
        if one.within is not None:
            self.tables.make(one.sql, one.within, in_doubt=in_doubt)
        else:
            self.tables.change(one.sql, in_doubt=in_doubt)
        reach(CrashPoint.SINK_AFTER_STATEMENT)

    def _write_point(self, at: Position, about_to: tuple[Position, int] | None = None) -> None:
        checkpoint = self.progress.checkpoint(PushedPoint(at, at), "ddl", about_to=about_to)
        assert checkpoint is not None, "a statement has a position"
        self.flusher.write(checkpoint)


@contextmanager
def _placed(at: Position) -> Iterator[None]:
    """Add the position to an error: an operator override needs it."""
    try:
        yield
    except DmdeltaError as error:
        error.context.setdefault("position", str(at))
        raise


def _following(at: Position, statement: Statement | None) -> Position:
    """Where the log continues after a statement; row changes with an operator override follow at the same position."""
    return Position(at.epoch, at.binlog_file, at.offset + (1 if statement is not None and statement.text else 0))


def _newest(*positions: Position | None) -> Position | None:
    return max((position for position in positions if position is not None), default=None)
