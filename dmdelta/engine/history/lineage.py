"""The history of a table from the task's records: its changes in bronze, and the snapshots that reloaded it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dmdelta.bronze.progress import landing_app
from dmdelta.bronze.retention import expired_to, forgotten, is_forgotten
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.context import SourceContext
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.task import Task
from dmdelta.errors import QualityError
from dmdelta.lakehouse.history import CommitTag, overlap_ends, own_commits
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.former_names import Ancestor, plan_lineage, renamings_before
from dmdelta.silver.history.lineage import (
    Beginnings,
    Carried,
    FileRows,
    LogBeginning,
    ReplayRange,
    Reread,
    files_of,
    plan_past,
)
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.sink.plan.reload import Reload


@dataclass(frozen=True, slots=True)
class NamedPast:
    """The part of a table's history that bronze has under one of its names."""

    task: Task
    context: SilverContext
    name: TableName

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def until(self, end: Position, carried: Carried | None) -> tuple[ReplayRange, ...]:
        """The ranges under this name that lead to a position.

        Args:
            carried: set if they begin at a RENAME.

        Raises:
            QualityError: bronze has none, or lacks some of the rows.
        """
        source = self.task.landing_source(self.context.source_id, self.context.flavor)
        expired, files = expired_to(self.task.spark, source), self.files()
        try:
            ranges = plan_past(files, end, replace(self.begun(files), carried=carried))
        except QualityError as error:  # the rows of a snapshot may have expired
            if expired is None:
                raise
            raise forgotten(source.source_id, expired) from error
        if not ranges:
            raise QualityError(
                f"bronze has no changes of {self.shown} before {end}",
                hint="`dmdelta events SPEC --table` shows the changes in bronze",
            )
        if expired is not None:
            self._assert_kept(ranges, source, expired)
        return ranges

    def _assert_kept(self, past: Sequence[ReplayRange], source: SourceContext, expired: Position) -> None:
        for part in past:
            reread = part.begin.epoch < 0
            if is_forgotten(self.task.spark, source, part.begin.epoch) if reread else part.begin <= expired:
                raise forgotten(source.source_id, expired)

    def newest_read(self, end: Position) -> Position | None:
        """Where the log continues after the newest ad-hoc snapshot before a position; None without one."""
        newest = Beginnings(self.rereads(self.files())).newest_read(end)
        return newest.resume_position if newest is not None else None

    def is_reread_at(self, position: Position) -> bool:
        """Whether the log resumes at a position after an ad-hoc snapshot of the table."""
        if any(one.table == self.name and one.position == position for one in _applied(self._store)):
            return True
        return any(reread.resume_position == position for reread in self.rereads(self.files()))

    @property
    def _store(self) -> ChunkStore:
        task = self.task
        return ChunkStore(task.spark, task.lakehouse, task.spec.name, self.context.source_id, task.run)

    def files(self) -> list[FileRows]:
        return files_of(self.task.spark, self.task.lakehouse, self.context.source_id, self.name)

    def begun(self, files: Sequence[FileRows]) -> Beginnings:
        """The beginning of each epoch of the source's log for the table."""
        spark, bronze, source_id = self.task.spark, self.task.lakehouse.bronze, self.context.source_id
        exact = exact_positions(spark, bronze, source_id).get(self.name)
        return Beginnings(self.rereads(files), {exact.epoch: exact} if exact else {}, self.overlap_ends())

    def overlap_ends(self) -> dict[int, Position]:
        """Up to where the log of an epoch has changes that earlier rows may have, by epoch; of all tables."""
        app = landing_app(self.task.spec.name, self.context.source_id)
        return overlap_ends(self.task.spark, self.task.lakehouse.bronze, app)

    def _marks(self) -> list[CommitTag]:
        """The tags of the silver commits that mark the beginning of a log, as far back as the history is kept."""
        target = self.context.table(self.name)
        tags = (commit.tag for commit in own_commits(self.task.spark, target.place, target.app))
        # The commits of a statement have no range either.
        return [tag for tag in tags if tag.begin == tag.end and tag.end.chunk is None and tag.rest is None]

    def rereads(self, files: Sequence[FileRows]) -> list[Reread]:
        """The ad-hoc snapshots that silver was loaded from."""
        task, context = self.task, self.context
        epochs = {file.begin.epoch for file in files if file.begin.epoch < 0}
        if not epochs:
            return []
        store = self._store
        applied = {one.epoch: one for one in _applied(store) if one.table == self.name}
        epochs -= {store.awaited().epoch}
        marks = self._marks() if epochs - applied.keys() else []
        rereads: list[Reread | None] = []
        for epoch in epochs:
            log_begin = store.load(epoch, context.flavor).log_begin
            exact = exact_positions(task.spark, task.lakehouse.bronze, context.source_id, (epoch, log_begin.epoch))
            rereads.append(plan_reread(epoch, exact.get(self.name, log_begin), applied.get(epoch), marks))
        return [reread for reread in rereads if reread is not None]


def plan_reread(
    epoch: int, resume_position: Position, applied: Reload | None, marks: Sequence[CommitTag]
) -> Reread | None:
    """An ad-hoc snapshot of a table; None if silver was not loaded from it: it was abandoned, maybe after some chunks.

    Args:
        resume_position: the position from which the log is applied after it.
        applied: the record that silver was loaded from it.
        marks: silver's commits that mark the beginning of a log: the proof, if the snapshot was applied later.
    """
    if applied is not None:
        return Reread(epoch, resume_position, applied.safe_until or applied.position)
    mark = next((tag for tag in marks if tag.end == resume_position), None)
    return Reread(epoch, resume_position, mark.safe_until or mark.end) if mark is not None else None


def _applied(store: ChunkStore) -> list[Reload]:
    """The ad-hoc snapshots that are recorded as applied; earlier versions did not record them."""
    return store.applied() if store.applied_epochs() else []


def plan_unsettled(begin: Position, end: Position, begun: Beginnings, *, keyed: bool) -> str:
    """Until where the rows of a history that begins with a snapshot are unknown at `end`; '' if they are known.

    Args:
        begin: the snapshot's first chunk.
        keyed: the table has a key. Without one, its rows are exact where its log continues.
    """
    newest = begun.newest_read(end)
    log, epoch = begun.log(begin.epoch + 1), begin.epoch + 1
    if newest is not None:
        log, epoch = LogBeginning(overlap_until=newest.until), newest.resume_position.epoch
    known_from = log.known_from if keyed else log.exact
    if keyed and end.chunk is not None:
        return str(known_from or "its end")
    # The log of a later epoch may have the rest of the overlap, or be read again.
    later = begun.log(end.epoch).known_from if end.epoch != epoch else None
    return str(max((one for one in (known_from, later) if one is not None and end < one), default=""))


@dataclass(frozen=True, slots=True)
class TablePast:
    """The history of one source table, under all names that it had."""

    task: Task
    context: SilverContext
    name: TableName

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def until(self, end: Position) -> tuple[ReplayRange, ...]:
        """The ranges that lead to the table's state at a position, under each name that it had.

        Raises:
            QualityError: bronze has none, or lacks rows: those of a snapshot that bypassed bronze, or expired ones.
        """
        ranges: tuple[ReplayRange, ...] = ()
        for ancestor in self.lineage(end):
            carried = Carried(ancestor.begin, self._is_repeated(ranges, ancestor.begin)) if ancestor.begin else None
            past = self._under(ancestor.name).until(ancestor.end, carried)
            named = [replace(part, table=ancestor.name) for part in past]
            ranges += (replace(named[0], renaming=ancestor.renaming), *named[1:])
        return ranges

    @staticmethod
    def _is_repeated(past: Sequence[ReplayRange], position: Position) -> bool:
        return any(part.begin.epoch != position.epoch for part in past)

    def lineage(self, end: Position) -> tuple[Ancestor, ...]:
        """The names that the table had before a position, oldest first.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        renamings = renamings_before(self.task.spark, self.context, end)
        return plan_lineage(renamings, self.name, end, lambda name, to: self._under(name).newest_read(to))

    def is_renamed(self, begin: Position, end: Position) -> bool:
        """Whether a RENAME in a range gave the table its rows, or replaced those that it had.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        return any(ancestor.begin is not None and ancestor.begin >= begin for ancestor in self.lineage(end))

    def after_last_read(self, begin: Position) -> Position:
        """The later of `begin` and the end of the last ad-hoc snapshot, which replaced all earlier rows in silver."""
        past = self._under(self.name)
        return max([begin, *(reread.resume_position for reread in past.rereads(past.files()))])

    def is_partial(self, begin: Position, end: Position) -> bool:
        """Whether some row images of a range may lack columns."""
        files = [
            file for file in self._under(self.name).files() if file.begin < end and file.begin.epoch >= begin.epoch
        ]
        return any(file.partial for file in files)

    def assert_settled(self, past: Sequence[ReplayRange], end: Position) -> None:
        """Assert that the rows of a history that begins with a snapshot are consistent at `end`.

        A snapshot reads rows while they change. They are as of one position only after the end of the snapshot.

        Raises:
            QualityError: `end` is before the snapshot's end, or in log that is read again; the table did not exist.
            LakehouseError: bronze cannot be read.
        """
        if past[0].begin.chunk is None:
            return
        first, keyed = self._under(past[0].table or self.name), bool(self.schema_before(end).primary_key)
        until = plan_unsettled(past[0].begin, end, first.begun(first.files()), keyed=keyed)
        if until:
            raise QualityError(
                f"a snapshot, or log that is read again, has newer rows of {self.shown} until {until}: "
                f"the table's rows at {end} are unknown",
                hint="use that position or a later one",
            )

    def _under(self, name: TableName) -> NamedPast:
        return NamedPast(self.task, self.context, name)

    def schema_before(self, end: Position) -> TableSchema:
        """The table's schema at a position.

        Raises:
            QualityError: the table did not exist.
        """
        schema = structure_at(self.task.spark, self.context, self.name, end)
        if schema is None:
            raise QualityError(f"{self.shown} did not exist at {end}", hint="use another position")
        return schema
