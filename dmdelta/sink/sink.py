"""The sink of one source: ranges of bronze in, an executed and recorded target out."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import DmdeltaError
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.sink.careful import Caution
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
from dmdelta.sink.read.change_reader import SliceReader, TableChanges
from dmdelta.sink.read.slices import Slice, Statement, cut, epochs, places, plan_slices
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.reloader import Reloader
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.target.tables import Tables

log = get_logger(__name__)
SliceChanges = list[list[TableChanges]]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A slice with its changes.

    Attributes:
        flushes: a synchronous flush follows it.
        settles: something may precede what follows it: a statement, or rows of an ad-hoc snapshot.
    """

    part: Slice
    changes: SliceChanges
    flushes: bool
    settles: bool


@dataclass(slots=True)
class Sink:
    """A running sink of one source; created by `open_sink`. One thread calls `apply`, then `end`.

    Attributes:
        proven: the records list everything executed after the checkpoint; otherwise they will once safe mode is over.
        position: the end of the newest source transaction that was handed to the workers.
        ahead: the newest point of a table that an earlier run has executed further than the others; None: none.
        about_to: the statement at `position` that an earlier run may have executed up to this part; None: none.
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
    caution: Caution
    reloader: Reloader
    proven: bool
    position: Position | None
    ahead: Position | None = None
    about_to: int | None = None
    ad_hoc: ReloadFeed = field(default_factory=ReloadFeed)
    skipped: int = 0
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
            at = first
            while at < last:
                if not self._precede(at, None, stopping):
                    return False
                ordered, state = self.execution.ordered, self.ad_hoc.state
                until = state.next_place(at, last, self.reloader.done) if ordered else last
                if not self._apply_to(at, until, stopping, safe_until):
                    return False
                at = until
        # Also where the range has no rows: what ends there may be the place of a snapshot's.
        self.position = max(end, self.position) if self.position is not None else end
        return self.reload_if_due(stopping)

    def reload_if_due(self, stopping: Callable[[], bool]) -> bool:
        """Execute what ad-hoc snapshots have read up to the position; False if stopped before. Raises as `apply`.

        `apply` does so, too; but a snapshot of an idle source is not followed by a range.
        """
        at = self.position
        return at is None or self._reload(at, stopping)

    def _apply_to(
        self, begin: Position, end: Position, stopping: Callable[[], bool], safe_until: Position | None
    ) -> bool:
        slices = plan_slices(self.reader.log.survey(begin, end))
        for turn in self._read_ahead(cut(slices, self.source.rules.operators, self.caution.read_at)):
            if not self._run(turn, stopping, safe_until) or (turn.part.boundary and stopping()):
                return False
        return True

    def _run(self, turn: _Turn, stopping: Callable[[], bool], safe_until: Position | None) -> bool:
        part, then = turn.part, turn.part.then
        self._execute(part, turn.changes, safe_until)
        if turn.flushes:
            self._flush()
        if turn.settles and not self._precede(part.end, then, stopping):
            return False
        if then is not None:
            with _placed(then.position):
                self._follow(then, loaded=safe_until is not None and then.position < safe_until)
        return True

    def _precede(self, at: Position, statement: Statement | None, stopping: Callable[[], bool]) -> bool:
        """Execute what of ad-hoc snapshots precedes the log from `at` on; False if stopped before."""
        changed = statement.tables if statement is not None else None
        while self.ad_hoc.state.must_wait(at, changed, ordered=self.execution.ordered):
            self.dispatcher.check()
            if stopping() or not self.ad_hoc.wait():
                return False
        return self._reload(at, stopping)

    def _reload(self, at: Position, stopping: Callable[[], bool]) -> bool:
        while reloads := self.ad_hoc.state.due(at, self.reloader.done):
            self.executed.forget(at.epoch, at.seq)
            if self.executed or (self.ahead is not None and at < self.ahead):
                return True  # later: rows that are deleted now, but were executed after `at`, would be missing
            self.position = at
            self.dispatcher.drain(PushedPoint(at, at))
            self.progress.raise_exit_point(at)
            self._write_point(at)
            if not self.reloader.run(reloads, at, stopping):
                return False
        return True

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

    def _read_ahead(self, slices: list[Slice]) -> Iterator[_Turn]:
        """Yields each slice with its changes.

        The next slice is read ahead, but not across a statement, a reload, or a synchronous flush: DM blocks reading
        then, too.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="sink-slice") as pool:
            ahead: Future[SliceChanges] | None = None
            for number, part in enumerate(slices):
                with _placed(part.begin):
                    changes = ahead.result() if ahead is not None else self.reader.read(part)
                flushes = self.settings.synchronous and part.then is None and self._is_flush_due()
                settles = part.boundary and (part.then is not None or self._may_precede(part.end))
                following = slices[number + 1] if number + 1 < len(slices) else None
                continues = following is not None and not settles and not flushes
                ahead = pool.submit(self.reader.read, following) if following and continues else None
                yield _Turn(part, changes, flushes, settles)

    def _may_precede(self, at: Position) -> bool:
        state = self.ad_hoc.state
        return bool(state.due(at, self.reloader.done)) or state.must_wait(at, None, ordered=self.execution.ordered)

    def _execute(self, part: Slice, changes: SliceChanges, safe_until: Position | None) -> None:
        self.skipped += sum(one.skipped for group in changes for one in group)
        plain, careful = self.caution.divide(part, changes, safe_until, (self.ad_hoc.state, self.reloader.done))
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

    def _check_proof(self) -> None:
        """Beyond everything that an unknown run may have executed, the records are complete."""
        flushed = self.flusher.flushed
        if self.proven or flushed is None:
            return
        if not self.caution.is_unknown(flushed.position):
            self.flusher.mark_whole()
            self.proven = True

    def _follow(self, statement: Statement, *, loaded: bool) -> None:
        """Execute a statement alone: everything before it is in the target, nothing after it.

        Args:
            loaded: a full load may have read the tables after the statement.
        """
        at = statement.position
        self.dispatcher.drain(PushedPoint(at, at))
        following = Position(at.epoch, at.binlog_file, at.offset + (1 if statement.text else 0))
        self.progress.raise_exit_point(following)
        context = StatementContext(
            self.source.rules, lambda table: self.reader.log.statements_on(table, at), self.settings.server.tidb
        )
        operator = self.source.rules.operators.get(at)
        texts = operator.followed(statement.text) if operator is not None else (statement.text,)
        planned = [one for text in texts if text for one in plan_statement(text, statement.schema, context)]
        for number, one in enumerate(planned):
            doubt = loaded or (self.about_to is not None and number <= self.about_to)
            if self.about_to is not None and number < self.about_to:
                continue
            self._change(one, at, number, in_doubt=doubt)
        self.about_to = None
        self.position = following
        self._write_point(following)
        self._flushed_at = time.monotonic()

    def _change(self, one: TargetStatement, at: Position, number: int, *, in_doubt: bool) -> None:
        if one.needs is not None and not self.tables.has(one.needs):
            log.info("statement skipped: the table does not exist yet", table=".".join(one.needs), position=str(at))
            return
        self._write_point(at, about_to=(at, number))
        reach(CrashPoint.SINK_BEFORE_STATEMENT)
        if one.within is not None:
            self.tables.make(one.sql, one.within, in_doubt=in_doubt)
        else:
            self.tables.change(one.sql, in_doubt=in_doubt)
        reach(CrashPoint.SINK_AFTER_STATEMENT)
        log.info("statement executed", position=str(at))

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


def _newest(*positions: Position | None) -> Position | None:
    return max((position for position in positions if position is not None), default=None)
