"""The tables of one source as of one position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame

from dmdelta.bronze.retention import assert_kept
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.checkpoint import FlushReason, Point, StoredPoints, load_points
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.ddl.types.silver_types import OWN_COLUMNS
from dmdelta.engine.history.lineage import NamedPast, TablePast
from dmdelta.engine.live.base import QUERY_TIME, Base, TailRange, plan_base, plan_tail, unknown_until
from dmdelta.engine.live.known_log import KnownLog, LogView
from dmdelta.engine.live.replayed import replayed_rows
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.source import TaskSource
from dmdelta.errors import NotReadable, QualityError
from dmdelta.lakehouse.history import newest_commits, own_commits
from dmdelta.lakehouse.retention import files_kept
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import quote
from dmdelta.silver.apply.renames import Renaming
from dmdelta.silver.apply.request import read_request
from dmdelta.silver.history.former_names import renamings_before
from dmdelta.silver.history.lineage import LogBeginning
from dmdelta.silver.history.repair import rows_at
from dmdelta.silver.live.state import LiveState, not_readable
from dmdelta.silver.live.tail import LiveTail
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.range_profile import (
    StructureEvent,
    StructuresBefore,
    structure_before,
    table_events,
)
from dmdelta.silver.table.shard_rows import shard_rows
from dmdelta.silver.table.table import merged_table_columns
from dmdelta.silver.table.target import Target


@dataclass(slots=True)
class LiveSource:
    """The tables of a source at `at`, a position between two transactions.

    Attributes:
        known: what earlier reads of the source have found; its memory is that of the source's context.
    """

    source: TaskSource
    at: Position
    known: KnownLog = field(default_factory=KnownLog)
    _bases: dict[tuple[TableName, Position], Base | None] = field(default_factory=dict)
    _kept: dict[str, timedelta] = field(default_factory=dict)
    _renamings: Sequence[Renaming] | None = None
    _log_view: LogView | None = None
    _points: StoredPoints | None = None
    _log: tuple[Mapping[TableName, Position], Mapping[int, Position]] | None = None

    def prepare(self, names: Sequence[TableName]) -> None:
        """Look up at once what the states of several tables need.

        Raises:
            DmdeltaError: as `state`.
        """
        bases = [self._base(name, self.at) for name in names]
        positions = [base.position for base in bases if base is not None and base.position.epoch == self.at.epoch]
        if not positions:
            return
        self._log_view = self.known.view(self.source.task.spark, self.source.context, min(positions), self.at)

    def state(self, name: TableName) -> LiveState:
        """The state of a source table; of a merged table, its own rows.

        Raises:
            NotReadable: the rows at the position are unknown.
            ForeignTable, LakehouseError: a table cannot be read.
        """
        if self.at.chunk is not None:
            raise not_readable(name, "the initial load is in progress", None)
        try:
            return self._state(name, self.at)
        except NotReadable:
            raise
        except QualityError as error:
            raise not_readable(name, error.message, None) from error

    def _state(self, name: TableName, at: Position) -> LiveState:
        base = self._base(name, at)
        renaming = self._renaming(name, base, at)
        if renaming is not None:
            return self._renamed(name, renaming, at)
        if base is None:
            return self._without_base(name, at)
        if not base.is_newest:
            assert_kept(self.source.task.spark, self.source.landing, base.position)
        state = LiveState(shard_rows(self.source.context.table(name), self.silver_rows(name, base)))
        for part in self._ranges(name, base, at):
            state = self.tail(name, part, base).after(state)
        return state

    def newest_base(self, name: TableName) -> tuple[Base, TailRange]:
        """The newest version of silver with the table's rows, and the range from it to `at`, in the epoch of `at`.

        Raises:
            NotReadable: silver has to advance first.
            LakehouseError: a table cannot be read.
        """
        base = self._base(name, self.at)
        if self.at.chunk is not None or base is None or self._renaming(name, base, self.at) is not None:
            raise not_readable(name, "silver does not contain it yet", None)
        (first, *others) = self._ranges(name, base, self.at)
        if others or first.begin.epoch != self.at.epoch or first.ddl_applied_to is not None:
            raise not_readable(name, "silver has nothing after a statement, or after the beginning of an epoch", None)
        return base, first

    def silver_rows(self, name: TableName, base: Base) -> DataFrame:
        """The version of silver; of a merged table, the rows of all shards.

        Raises:
            LakehouseError: it cannot be read.
        """
        return rows_at(self.source.task.spark, self.source.context.table(name), base.version)

    def structures_before(self, name: TableName, begin: Position) -> tuple[StructureEvent, ...]:
        """The structures and statements that determine a table's structure at a position.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        spark, log, view = self.source.task.spark, self.source.context, self._log_view
        if view is not None and view.begin <= begin:
            return view.structures_before(name, begin)
        return structure_before(spark, log.lakehouse, log.source_id, name, begin)

    def _ranges(self, name: TableName, base: Base, at: Position) -> tuple[TailRange, ...]:
        """The ranges after a version of silver.

        Raises:
            NotReadable: the rows at the position are unknown.
        """
        beginning = self._beginning(name, base, at)
        until = unknown_until(base, at, beginning)
        if until is not None:
            reason = f"a snapshot read it until {until}, and its rows before that are unknown"
            raise not_readable(name, reason, None, again_from=until)
        return plan_tail(base, at, beginning)

    def tail(self, name: TableName, part: TailRange, base: Base | None = None) -> LiveTail:
        """The changes of a range.

        Raises:
            LakehouseError: a merged table cannot be read.
        """
        spark, context = self.source.task.spark, self.source.context
        request = replace(
            read_request(context, name, part.begin, part.end),
            context=replace(context.uncoordinated, checks=context.checks),
            mode=part.mode,
            ddl_applied_to=part.ddl_applied_to,
            safe_until=base.safe_until if base is not None else None,
        )
        view = self._log_view
        if view is not None and part.end == self.at and view.begin <= part.begin:
            request = replace(
                request,
                events=view.events_since(name, part.begin),
                earlier=StructuresBefore(part.begin, view.structures_before(name, part.begin)),
            )
        target = request.target
        left_out = merged_table_columns(spark, target).left_out if target.merged and base is not None else frozenset()
        return LiveTail(spark, request, left_out)

    def _base(self, name: TableName, at: Position) -> Base | None:
        if (name, at) not in self._bases:
            spark, target = self.source.task.spark, self.source.context.table(name)
            applied = self._applied(name)  # before silver: it may have more than the checkpoint shows, not less
            newest, commit = newest_commits(spark, target.place, target.app)
            found = None
            if newest is not None and commit is not None:
                found = plan_base(
                    own_commits(spark, target.place, target.app),
                    newest,
                    at,
                    applied,
                    is_kept=lambda replaced_at: self._is_kept(target, replaced_at),
                    is_reload=self._past(name).is_reread_at,
                )
            self._bases[name, at] = found
        return self._bases[name, at]

    def _is_kept(self, target: Target, replaced_at: datetime) -> bool:
        if target.place not in self._kept:
            self._kept[target.place] = files_kept(self.source.task.spark, target.place) - QUERY_TIME
        return datetime.now(timezone.utc) - replaced_at <= self._kept[target.place]

    def _past(self, name: TableName) -> NamedPast:
        return NamedPast(self.source.task, self.source.context, name)

    def _renaming(self, name: TableName, base: Base | None, at: Position) -> Renaming | None:
        """The newest statement before `at` that gave the table its name, or freed the name, if `base` is before it."""
        view = self._log_view
        if base is not None and view is not None and view.begin <= base.position:
            renamings = view.renamings
        else:
            renamings = self._all_renamings()
        found = next((one for one in reversed(renamings) if one.at < at and name in one.sources), None)
        return None if found is None or (base is not None and _is_after(base, found.at)) else found

    def _all_renamings(self) -> Sequence[Renaming]:
        if self._renamings is None:
            self._renamings = renamings_before(self.source.task.spark, self.source.context, self.at)
        return self._renamings

    def _beginning(self, name: TableName, base: Base, at: Position) -> LogBeginning:
        """How the log of the epoch of `at` begins for a table, if its newest commit is from an earlier one."""
        if base.committed.epoch == at.epoch:
            return LogBeginning()
        if self._log is None:
            exact = exact_positions(self.source.task.spark, self.source.context.bronze, self.source.context.source_id)
            self._log = exact, self._past(name).overlap_ends()
        exact_position = self._log[0].get(name)
        is_of_log = exact_position is not None and exact_position.epoch == at.epoch
        return LogBeginning(exact_position if is_of_log else None, self._log[1].get(at.epoch))

    def _applied(self, name: TableName) -> Position | None:
        """Everything of a table before this position is in silver, as the checkpoint shows; None: unknown."""
        if self._points is None:
            task, source_id = self.source.task, self.source.context.source_id
            stored = load_points(task.spark, task.lakehouse, task.spec.name, source_id)
            self._points = stored or StoredPoints(0, FlushReason.INTERVAL, Point(ORIGIN), {}, None)
        own, everywhere = self._points.tables.get(name), self._points.global_point.position
        applied = max(own.point.position, everywhere) if own is not None else everywhere
        return applied if applied > ORIGIN else None

    def _renamed(self, name: TableName, renaming: Renaming, at: Position) -> LiveState:
        """The state of a table that got its name after silver's version: that of the other table, and what follows."""
        source, context = renaming.sources[name], self.source.context
        state = LiveState(None)
        if source is not None:
            target, former = context.table(name), context.table(source)
            if target.merged or former.merged:
                raise not_readable(name, "a shard of a merged table is renamed", renaming.at)
            effects = statement_effects(
                renaming.event.text, renaming.default_schema, lambda _: None, mariadb=context.flavor == "mariadb"
            )
            if any(isinstance(effect, Altered) for effect in effects):
                raise not_readable(name, "a statement renames and alters it", renaming.at)
            state = self._state(source, renaming.at)
            if state.rows is None:
                raise not_readable(name, f"it gets the rows of {'.'.join(source)}, which is unknown", renaming.at)
            state = replace(state, rows=state.rows.selectExpr(*_received(state.rows.columns, former, target)))
        part = TailRange(renaming.at, at, Mode.NORMAL, renaming.at)
        return self.tail(name, part).after(state)

    def _without_base(self, name: TableName, at: Position) -> LiveState:
        """The state of a table that silver has only later, or not yet."""
        task, context = self.source.task, self.source.context
        target = context.table(name)
        _, commit = newest_commits(task.spark, target.place, target.app)
        if commit is not None:
            return LiveState(replayed_rows(task, context, name, at))
        past = TablePast(task, context, name)
        if not self._past(name).files():
            return LiveState(None)
        ranges = past.until(at)
        past.assert_settled(ranges, at)
        store = ChunkStore(task.spark, task.lakehouse, task.spec.name, context.source_id, task.run)
        loads = task.spec.loads(self.source.config) or name in store.awaited().tables
        state, first = LiveState(None), ranges[0]
        if loads and first.begin.chunk is None and not self._is_created(name, first.begin, first.end):
            raise not_readable(name, "a snapshot has not read the rows that it had before", None)
        for part in ranges:
            mode = Mode.SAFE if part.again else Mode.NORMAL
            state = self.tail(part.table or name, TailRange(part.begin, part.end, mode)).after(state)
        return state

    def _is_created(self, name: TableName, begin: Position, end: Position) -> bool:
        """Whether the table's first event in a range is its creation."""
        structure = table_events(self.source.task.spark, self.source.context, name, begin, end).structure
        created = (
            event.op is Op.DDL and any(target.op == "create_table" for target in statement_targets(event.text, name[0]))
            for event in structure[:1]
        )
        return any(created)


def _is_after(base: Base, statement: Position) -> bool:
    return base.position > statement or base.ddl_applied_to == statement


def _received(columns: Sequence[str], former: Target, target: Target) -> list[str]:
    """The columns of a table that gets another one's rows, with its own constant columns."""
    constants = {column.name for column in former.constants}
    kept = [quote(name) for name in columns if name not in constants and name not in OWN_COLUMNS]
    return [*kept, *target.added, *OWN_COLUMNS]
