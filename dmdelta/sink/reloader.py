"""Replaces rows of the target by those of an ad-hoc snapshot, at a boundary of the log.

The reload is one unit: the rows of the tables are deleted, those of the snapshot are inserted, and the log of these
tables from where it continues after the rows is executed again, up to the boundary. Then the target records that it has
the snapshot. After a crash before that, the unit starts again: nothing after the boundary has been executed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import FAR, Position
from dmdelta.model.schema import TableName
from dmdelta.sink.execute.dispatcher import Dispatcher, Scope
from dmdelta.sink.execute.merger import Style
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.execute.slice_executor import SliceExecution
from dmdelta.sink.plan.checkpoint import PushedPoint
from dmdelta.sink.plan.reload import Reload, own_rows
from dmdelta.sink.plan.table_mapping import TablePlan
from dmdelta.sink.read.change_reader import SliceReader, TableChanges
from dmdelta.sink.read.slices import Slice, cut, epochs, places, plan_slices
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.target.emptying import empty_table
from dmdelta.sink.target.metadata import Metadata
from dmdelta.sink.target.target_session import TargetSession

log = get_logger(__name__)


@dataclass(slots=True)
class Reloader:
    """
    Attributes:
        reader: reads everything, whatever an earlier run has executed.
        done: the epoch of the newest snapshot that the target has, by table.
    """

    settings: SinkSettings
    metadata: Metadata
    reader: SliceReader
    dispatcher: Dispatcher
    execution: SliceExecution
    progress: Progress
    done: dict[TableName, int] = field(default_factory=dict)
    _session: TargetSession = field(init=False)

    def __post_init__(self) -> None:
        self._session = TargetSession(self.settings.server)

    def cut_off(self) -> None:
        """End the session of a transaction that does not end; none follows. Another thread may call it."""
        self._session.cut_off()

    def run(
        self, reloads: Sequence[Reload], at: Position, stopping: Callable[[], bool], position: Position | None = None
    ) -> bool:
        """Reload tables from one snapshot; False if stopped before the end.

        Args:
            at: the boundary: everything before it has been executed of the tables, and their point is there.
            position: where the other tables are, with the checkpoint; None: at the boundary, too.

        Raises:
            DmdeltaError: the target, bronze or the rules stop the sink.
        """
        by_table, point = {one.table: one for one in reloads}, PushedPoint(position or at, position or at)
        log.info("sink reload started", source=self.metadata.source_id, tables=_shown(by_table), position=str(at))
        slices = self._rows_read(reloads[0].epoch, by_table)
        found = {(one.name, one.version) for part in slices for one in part.rows if one.version is not None}
        # The log behind the rows may be executed already, on rows that stay.
        by_table |= {name: replace(by_table[name], safe_until=at) for name in self._empty(found)}
        reach(CrashPoint.SINK_RELOAD_EMPTIED)
        for part in chain(slices, self._log_since(by_table, at)):
            if stopping():
                return False
            self._execute(part, self.reader.read(part), by_table, point)
        self.dispatcher.drain(point)
        reach(CrashPoint.SINK_RELOAD_EXECUTED)
        epochs_of = {name: one.epoch for name, one in by_table.items()}
        self._record(epochs_of)
        self.done.update(epochs_of)
        log.info("sink reload ended", source=self.metadata.source_id, tables=_shown(by_table), position=str(at))
        return True

    def _record(self, epochs_of: dict[TableName, int]) -> None:
        def act(_: int) -> None:
            connection = self._session.connection()
            self.metadata.mark_reloaded(connection, epochs_of)
            connection.commit()

        try:
            self._session.attempt(act)
        finally:
            self._session.close()

    def _rows_read(self, epoch: int, tables: Collection[TableName]) -> list[Slice]:
        bronze = self.reader.log
        windows = bronze.windows(Position.of_chunk(epoch, 1), Position(epoch, FAR, 0))
        return [part for window in windows for part in _of_tables(plan_slices(bronze.survey(*window)), tables)]

    def _log_since(self, by_table: dict[TableName, Reload], at: Position) -> Iterator[Slice]:
        """The log of the tables from where it continues after the rows; statements on them cannot be in it."""
        positions = {name: one.position for name, one in by_table.items()}
        bronze = self.reader.log
        for first, last in epochs(min(positions.values()), at):
            for window in bronze.windows(first, last):
                slices = plan_slices(bronze.survey(*window))
                yield from _of_tables(cut(slices, (), positions), by_table)

    def _empty(self, structures: Collection[tuple[TableName, int]]) -> list[TableName]:
        """Delete the rows of each table; creates tables and columns that the target lacks.

        Returns:
            The tables whose rows stay, as nothing tells them from those of others.
        """
        kept: list[TableName] = []
        known = self.reader.log.tables()
        schemas = self.reader.log.structures({version for _, version in structures}, Position.of_chunk(-1, 1))
        for name, version in sorted(structures):
            rules = self.reader.source.rules
            own = own_rows(rules, name, known - {name}, self.settings.sources)
            plan = self.reader.tables.plan(
                name, version, schemas[version], rules.route(*name), reloaded=own == "", loaded=True
            )
            if own is None:
                _warn_of_others(plan)
                kept.append(name)
                continue
            empty_table(self._session, self.metadata, plan.shape.table, own)
            if not own:
                self.reader.tables.fresh.add(plan.schema.name)
        return kept

    def _execute(
        self, part: Slice, changes: list[list[TableChanges]], by_table: dict[TableName, Reload], point: PushedPoint
    ) -> None:
        for one in (one for group in changes for one in group):
            self.progress.add_table(one.plan.source, one.plan.shape.table, point.tables)
        doubtful = [
            group
            for group in changes
            if any(one.moves_unknown or _is_in_doubt(by_table[one.plan.source], part) for one in group)
        ]
        plain = [group for group in changes if group not in doubtful]
        for groups, safe in ((plain, False), (doubtful, True)):
            if groups:
                style = Style(self.settings.multiple_rows, safe, self.settings.server.foreign_key_checks)
                scope = Scope(part.begin.epoch, part.begin.seq, part.end.seq - 1, style, places(part.begin))
                self.dispatcher.enter(scope)
                self.execution.execute(groups)
        self.dispatcher.push(point)


def _is_in_doubt(reload: Reload, part: Slice) -> bool:
    """A row that moved while the snapshot read it may be in it twice; the log after that may be in it, too."""
    if part.begin.epoch < 0:
        return True
    return reload.safe_until is not None and part.begin < reload.safe_until


def _of_tables(slices: Sequence[Slice], tables: Collection[TableName]) -> list[Slice]:
    """What the slices contain of some tables, without statements."""
    parts = [replace(part, rows=tuple(rows for rows in part.rows if rows.name in tables), then=None) for part in slices]
    return [part for part in parts if part.rows]


def _warn_of_others(plan: TablePlan) -> None:
    log.warning(
        "the target's table has rows of other tables, too, and nothing tells them apart: rows that the source no "
        "longer has stay there, and rows without a key are duplicated",
        table=plan.shape.table,
        fix="let the route extract columns that identify the table",
    )


def _shown(tables: Collection[TableName]) -> list[str]:
    return sorted(".".join(name) for name in tables)
