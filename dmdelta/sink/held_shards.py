"""The shards that wait for others: their log is left out, and is executed once they are released.

A released shard is re-synchronized: its log is read again from its statement on, up to where the other tables are. What
an ad-hoc snapshot has read of it meanwhile replaces its rows there, at its place in the log: before that, the target's
table has other columns than the snapshot.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.careful import Caution
from dmdelta.sink.execute.dispatcher import Scope
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.plan.checkpoint import PushedPoint
from dmdelta.sink.plan.reload import Reload
from dmdelta.sink.plan.target_statement import TargetStatement
from dmdelta.sink.read.change_reader import TableChanges
from dmdelta.sink.read.slices import Slice, Statement, cut, epochs, placed, places, plan_slices
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.reloader import Reloader
from dmdelta.sink.shards import Outcome, SinkShards
from dmdelta.sink.statements import Statements, position_after

log = get_logger(__name__)


@dataclass(slots=True)
class HeldShards:
    """The shards of one source, in a running sink.

    Attributes:
        shards: decides on their statements; None: each is executed as it is, and no shard is held.
        reloader: its reader also reads what is held.
        held: the shards that wait, with the position of the statement; shared with the sink's reader.
    """

    shards: SinkShards | None
    statements: Statements
    reloader: Reloader
    caution: Caution
    ad_hoc: ReloadFeed
    held: dict[TableName, Position] = field(default_factory=dict)

    def follow(self, statement: Statement, planned: Sequence[TargetStatement]) -> bool:
        """Let the shards agree on a statement; False: what it does to merged tables is done, or waits.

        Raises:
            DmdeltaError: the target refuses it, or the sink cannot coordinate it.
        """
        as_it_is, texts = True, [one.sql for one in planned if one.merged]
        for name in statement.tables if self.shards is not None else ():
            assert self.shards is not None
            if not self.shards.coordinates(name):
                continue
            outcome = Outcome.WAITS
            if name not in self.held:
                # First: once the columns change, rows before the statement cannot be read again.
                self.statements.keep_point(statement.position)
                outcome = self.shards.follow(name, statement, texts, self.statements.tables)
                if outcome is Outcome.WAITS:
                    self._hold(name, statement.position)
            as_it_is = as_it_is and outcome is Outcome.OWN
        return as_it_is

    def join(self, part: Slice) -> None:
        """The structure of a shard is known once it has rows."""
        shards = self.shards
        if shards is None:
            return
        new = {one.name: one.version for one in part.rows if one.version is not None and one.name not in self.held}
        for name, version in new.items():
            if shards.coordinates(name) and not shards.is_known(name):
                shards.joins(name, self.statements.log.structures({version}, part.begin)[version])

    def join_reloaded(self, reloads: Sequence[Reload]) -> None:
        """The rows of a shard that is not held were replaced: its structure is that of the snapshot."""
        for one in reloads if self.shards is not None else ():
            assert self.shards is not None
            if self.shards.coordinates(one.table):
                self.shards.joins_at(one.table, one.position)

    def resume(self, position: Position, stopping: Callable[[], bool]) -> None:
        """Let the shards continue that need not wait any longer. Call it between ranges.

        Args:
            position: where the other tables are.
            stopping: called between the slices of a reload; a shard whose reload is stopped stays held.

        Raises:
            DmdeltaError: the target, bronze or the rules stop the sink.
        """
        for name in self.shards.released(self.held) if self.shards is not None else ():
            at = self.held[name]
            with placed(at):
                # Also the checkpoint: a re-sync after a crash ends where this one does, or later.
                self._drain(position)
                self.statements.keep_point(position)
                if self._reload(name, at, position, stopping) and self._passes(name, at, position):
                    self._resync(name, position, stopping)

    def _hold(self, name: TableName, at: Position) -> None:
        source_id = self.statements.source.source_id
        log.info("shard waits in the sink", source=source_id, shard=".".join(name), at=str(at))
        self.held[name] = at
        self.statements.progress.hold(name, at)

    def _passes(self, name: TableName, at: Position, position: Position) -> bool:
        """Execute the statement at which a shard is held, if there is one; False: it waits."""
        statement = self.statements.log.statement_at(at)
        return statement is None or self._executes(name, statement, position)

    def _executes(self, name: TableName, statement: Statement, position: Position) -> bool:
        """Execute the statement that a shard has reached again, and record that; False: it waits."""
        assert self.shards is not None, "only a shard is held"
        planned = [one for one in self.statements.plan(statement) if one.merged]
        if self.held[name] != statement.position:
            self._move(name, statement.position, position)
        outcome = self.shards.follow(name, statement, [one.sql for one in planned], self.statements.tables)
        if outcome is Outcome.OWN:
            self.statements.repeat(planned)
        waits, at = outcome is Outcome.WAITS, statement.position
        self._move(name, at if waits else position_after(at, statement), position)
        return not waits

    def _resync(self, name: TableName, position: Position, stopping: Callable[[], bool]) -> None:
        """Execute what was held of a shard, in safe mode, up to where the other tables are or its next wait."""
        source_id, begin = self.statements.source.source_id, self.held[name]
        log.info("shard resumed in the sink", source=source_id, shard=".".join(name), at=str(begin))
        for first, last in epochs(begin, position):
            at = first
            while at < last:
                until = self.ad_hoc.state.only(name).next_place(at, last, self.reloader.done)
                if not self._resync_to(name, at, until, position):
                    return
                if not self._reload(name, until, position, stopping):
                    return
                at = until
        self._drain(position)
        reach(CrashPoint.SINK_RESYNCED)
        self.held.pop(name)
        self.statements.progress.release(name)
        self.statements.keep_point(position)

    def _resync_to(self, name: TableName, begin: Position, end: Position, position: Position) -> bool:
        """Execute what was held of a shard in [begin, end); False: it waits again."""
        for part in self._parts(begin, end):
            own = replace(part, rows=tuple(rows for rows in part.rows if rows.name == name))
            self._execute_again(own, self.reloader.reader.read(own), position)
            if part.then is not None and name in part.then.tables:
                self._drain(position)
                if not self._executes(name, part.then, position):
                    return False
        return True

    def _parts(self, begin: Position, end: Position) -> Iterator[Slice]:
        """What the log has in [begin, end), split at its statements."""
        bronze = self.statements.log
        for window in bronze.windows(begin, end):
            yield from cut(plan_slices(bronze.survey(*window)), self.statements.source.rules.operators, {})

    def _reload(self, name: TableName, at: Position, position: Position, stopping: Callable[[], bool]) -> bool:
        """Replace the rows of a shard by those that ad-hoc snapshots have read up to `at`; False if stopped before."""
        while reloads := self.ad_hoc.state.only(name).due(at, self.reloader.done):
            # First the point: the log before it is older than the rows of the snapshot.
            self._drain(position)
            self._move(name, at, position)
            if not self.reloader.run(reloads, at, stopping, position):
                return False
        return True

    def _execute_again(self, part: Slice, changes: list[list[TableChanges]], position: Position) -> None:
        if not changes:
            return
        self.caution.warn_of_keyless(changes)
        for one in (one for group in changes for one in group):
            self.statements.progress.add_table(one.plan.source, one.plan.shape.table, part.begin)
        settings, execution = self.reloader.settings, self.reloader.execution
        style = Style(settings.multiple_rows, True, settings.server.foreign_key_checks)
        scope = Scope(part.begin.epoch, part.begin.seq, part.end.seq - 1, style, places(part.begin))
        execution.dispatcher.enter(scope)
        execution.execute(changes)
        execution.dispatcher.push(PushedPoint(position, position))

    def _move(self, name: TableName, at: Position, position: Position) -> None:
        """Record how far a shard is; the checkpoint of the others stays where it is."""
        self._hold(name, at)
        self.statements.keep_point(position)

    def _drain(self, position: Position) -> None:
        self.reloader.dispatcher.drain(PushedPoint(position, position))
