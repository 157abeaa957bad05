"""The sink of one source: ranges of bronze in, an executed and recorded target out."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dmdelta.changelog.context import SourceContext
from dmdelta.errors import SinkError
from dmdelta.model.position import Position
from dmdelta.model.segment import continues
from dmdelta.sink.careful import Caution
from dmdelta.sink.execute.counters import read_metrics
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.ending import Ending
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.purger import Purger
from dmdelta.sink.execute.slice_executor import SliceExecution
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.held_shards import HeldShards
from dmdelta.sink.metrics import SinkMetrics
from dmdelta.sink.plan.checkpoint import PushedPoint
from dmdelta.sink.plan.reload import AdHocState
from dmdelta.sink.read.ahead import SliceChanges, Turn, read_ahead
from dmdelta.sink.read.change_reader import SliceReader
from dmdelta.sink.read.slices import Slice, Statement, cut, epochs, placed, places, plan_slices
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.reloader import Reloader
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.statements import Statements, position_after
from dmdelta.sink.target.tables import Tables


@dataclass(slots=True)
class Sink:
    """A running sink of one source; created by `open_sink`. One thread calls `apply`, then `end`.

    Attributes:
        proven: the records list everything executed after the checkpoint; otherwise they will once safe mode is over.
        position: the end of the newest source transaction that was handed to the workers.
        ahead: the newest point of a table that an earlier run has executed further than the others; None: none.
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
    statements: Statements
    shards: HeldShards
    proven: bool
    position: Position | None
    ahead: Position | None = None
    ad_hoc: ReloadFeed = field(default_factory=ReloadFeed)
    _left: bool = False
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
            SinkError: the range does not join what was executed.
        """
        self._assert_joins(begin)
        self._left = True
        begin = max(begin, self.position) if self.position is not None else begin
        for first, last in epochs(begin, end):
            at = first
            while at < last:
                if not self._precede(at, None, stopping):
                    return False
                until = self._ad_hoc.next_place(at, last, self.reloader.done) if self.execution.ordered else last
                if not self._apply_to(at, until, stopping, safe_until):
                    return False
                at = until
        # Also where the range has no rows: what ends there may be the place of a snapshot's.
        self.position = max(end, self.position) if self.position is not None else end
        self._left = False
        return self.reload_if_due(stopping)

    def _assert_joins(self, begin: Position) -> None:
        """Check that nothing lies between the position and `begin`, which would never be executed."""
        at = self.position
        if at is not None and begin > at and (self._left or not continues(at, begin)):
            raise SinkError(
                f"the sink is at {at}, and the next range of the log begins at {begin}",
                hint="start the task again: the sink continues at its checkpoint. If the error returns, report it",
            )

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
        parts = cut(slices, self.source.rules.operators, self.caution.read_at)
        for turn in read_ahead(parts, self.reader.read, self._ends_with):
            if not self._run(turn, stopping, safe_until) or (turn.part.boundary and stopping()):
                return False
        return True

    def _run(self, turn: Turn, stopping: Callable[[], bool], safe_until: Position | None) -> bool:
        part, then = turn.part, turn.part.then
        self._execute(part, turn.changes, safe_until)
        if turn.flushes:
            self._flush()
        if turn.settles and not self._precede(part.end, then, stopping):
            return False
        if then is not None:
            with placed(then.position):
                self._follow(then, loaded=safe_until is not None and then.position < safe_until)
        return True

    def _precede(self, at: Position, statement: Statement | None, stopping: Callable[[], bool]) -> bool:
        """Execute what of ad-hoc snapshots precedes the log from `at` on; False if stopped before."""
        changed = None if statement is None else () if statement.dropped_schemas else statement.tables
        while self.ad_hoc.state.must_wait(at, changed, ordered=self.execution.ordered):
            self.dispatcher.check()
            if stopping() or not self.ad_hoc.wait():
                return False
        return self._reload(at, stopping)

    @property
    def oldest(self) -> Position | None:
        """Everything before it was handed to the workers, of every table; None: nothing was."""
        return min([self.position, *self.shards.held.values()]) if self.position is not None else None

    @property
    def _ad_hoc(self) -> AdHocState:
        """The ad-hoc snapshots; the rows of held shards are replaced when these continue."""
        return self.ad_hoc.state.without(self.shards.held)

    def _reload(self, at: Position, stopping: Callable[[], bool]) -> bool:
        while reloads := self._ad_hoc.due(at, self.reloader.done):
            self.executed.forget(at.epoch, at.seq)
            if self.executed or (self.ahead is not None and at < self.ahead):
                return True  # later: rows that are deleted now, but were executed after `at`, would be missing
            self.position = at
            self.dispatcher.drain(PushedPoint(at, at))
            self.progress.raise_exit_point(at)
            self.statements.write_point(at)
            if not self.reloader.run(reloads, at, stopping):
                return False
            self.shards.join_reloaded(reloads)
        return True

    def resume_shards(self, stopping: Callable[[], bool]) -> None:
        """Let the held shards continue that need not wait any longer: see `HeldShards.resume`."""
        if self.position is not None:
            self.shards.resume(self.position, stopping)

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

    def cut_off(self) -> None:
        """After an end that takes too long: end all sessions on the target, which may hold locks or change it later."""
        self.dispatcher.cut_off()
        self.flusher.cut_off()
        self.tables.cut_off()
        self.reloader.cut_off()

    def metrics(self) -> SinkMetrics:
        """The current counters."""
        return read_metrics(self.source.source_id, self.dispatcher, self.flusher)

    def _ends_with(self, part: Slice) -> tuple[bool, bool]:
        """Whether a synchronous flush follows a slice, and whether something may precede what follows it."""
        flushes = self.settings.synchronous and part.then is None and self._is_flush_due()
        return flushes, part.boundary and (part.then is not None or self._may_precede(part.end))

    def _may_precede(self, at: Position) -> bool:
        state = self._ad_hoc
        return bool(state.due(at, self.reloader.done)) or state.must_wait(at, None, ordered=self.execution.ordered)

    def _execute(self, part: Slice, changes: SliceChanges, safe_until: Position | None) -> None:
        self.shards.join(part)
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
        return time.monotonic() - max(self._flushed_at, self.statements.written_at) > self.flusher.interval

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
        at, following = statement.position, position_after(statement.position, statement)
        self.dispatcher.drain(PushedPoint(at, at))
        self.progress.raise_exit_point(following)
        planned = self.statements.plan(statement)
        if not self.shards.follow(statement, planned):
            planned = [one for one in planned if not one.merged]
        self.statements.change(planned, at, loaded=loaded)
        self.position = following
        self.statements.write_point(following)
