"""A table's past as the task's records tell it: what bronze holds of it, and which snapshots began it again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dmdelta.bronze.landing import landing_app
from dmdelta.bronze.retention import expired_to, forgotten, is_forgotten
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.context import SourceContext
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.task import Task
from dmdelta.errors import QualityError
from dmdelta.lakehouse.history import CommitTag, own_commits
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.former_names import Ancestor, plan_lineage, renamings_before
from dmdelta.silver.history.lineage import Beginnings, Carried, FileRows, ReplayRange, Reread, files_of, plan_past
from dmdelta.silver.schema.lookup import structure_at


@dataclass(frozen=True, slots=True)
class NamedPast:
    """What bronze holds under one name of a table."""

    task: Task
    side: SilverContext
    name: TableName

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def until(self, end: Position, carried: Carried | None) -> tuple[ReplayRange, ...]:
        """The stretches under this name that lead to a position.

        Args:
            carried: a RENAME is where they begin.

        Raises:
            QualityError: there are none, or rows are not in bronze.
        """
        source = self.task.landing_source(self.side.source_id, self.side.flavor)
        expired, files = expired_to(self.task.spark, source), self.files()
        try:
            found = plan_past(files, end, replace(self.begun(files), carried=carried))
        except QualityError as error:  # what a snapshot read may be among what has expired
            if expired is None:
                raise
            raise forgotten(source.source_id, expired) from error
        if not found:
            raise QualityError(
                f"bronze has nothing of {self.shown} before {end}",
                hint="`dmdelta events SPEC --table` shows what it has",
            )
        if expired is not None:
            self._assert_kept(found, source, expired)
        return found

    def _assert_kept(self, past: Sequence[ReplayRange], source: SourceContext, expired: Position) -> None:
        for stretch in past:
            reread = stretch.begin.epoch < 0
            if is_forgotten(self.task.spark, source, stretch.begin.epoch) if reread else stretch.begin <= expired:
                raise forgotten(source.source_id, expired)

    def newest_read(self, end: Position) -> Position | None:
        """Where the log continues behind the newest ad-hoc snapshot before a position; None without one."""
        newest = Beginnings(self.rereads(self.files())).newest_read(end)
        return newest.resume_position if newest is not None else None

    def files(self) -> list[FileRows]:
        return files_of(self.task.spark, self.task.lakehouse, self.side.source_id, self.name)

    def begun(self, files: Sequence[FileRows]) -> Beginnings:
        """How the logs of the source began for the table."""
        spark, bronze, source_id = self.task.spark, self.task.lakehouse.bronze, self.side.source_id
        exact = exact_positions(spark, bronze, source_id).get(self.name)
        marks = self._marks(bronze, landing_app(self.task.spec.name, source_id))
        return Beginnings(
            self.rereads(files),
            {exact.epoch: exact} if exact else {},
            {tag.end.epoch: tag.safe_until or tag.end for tag in marks},
        )

    def _marks(self, place: str, app: str) -> list[CommitTag]:
        """Of the commits that say where a log is begun."""
        tags = (commit.tag for commit in own_commits(self.task.spark, place, app))
        return [tag for tag in tags if tag.begin == tag.end and tag.end.chunk is None and not tag.again]

    def rereads(self, files: Sequence[FileRows]) -> list[Reread]:
        """The ad-hoc snapshots that silver was made of."""
        task, side = self.task, self.side
        epochs = {file.begin.epoch for file in files if file.begin.epoch < 0}
        if not epochs:
            return []
        store = ChunkStore(task.spark, task.lakehouse, task.spec.name, side.source_id, task.run)
        marks = self._marks(side.table(self.name).place, side.table(self.name).app)
        found: list[Reread] = []
        for epoch in epochs - {store.awaited().epoch}:
            log_begin = store.load(epoch, side.flavor).log_begin
            exact = exact_positions(task.spark, task.lakehouse.bronze, side.source_id, (epoch, log_begin.epoch))
            goes_on = exact.get(self.name, log_begin)
            until = next((tag.safe_until or tag.end for tag in marks if tag.end == goes_on), None)
            found.append(Reread(epoch, goes_on, until))
        return found


@dataclass(frozen=True, slots=True)
class TablePast:
    """The past of one source table, under all names that it had."""

    task: Task
    side: SilverContext
    name: TableName

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def until(self, end: Position) -> tuple[ReplayRange, ...]:
        """The stretches that make the table as it was at a position, under each name that it had.

        Raises:
            QualityError: there are none, or rows are not in bronze: what a snapshot read, or what has expired.
        """
        found: tuple[ReplayRange, ...] = ()
        for ancestor in self.lineage(end):
            carried = Carried(ancestor.begin, self._is_told(found, ancestor.begin)) if ancestor.begin else None
            past = self._under(ancestor.name).until(ancestor.end, carried)
            named = [replace(stretch, table=ancestor.name) for stretch in past]
            found += (replace(named[0], renaming=ancestor.renaming), *named[1:])
        return found

    @staticmethod
    def _is_told(past: Sequence[ReplayRange], position: Position) -> bool:
        return any(stretch.begin.epoch != position.epoch for stretch in past)

    def lineage(self, end: Position) -> tuple[Ancestor, ...]:
        """The names that the table had before a position, oldest first.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        renamings = renamings_before(self.task.spark, self.side, end)
        return plan_lineage(renamings, self.name, end, lambda name, to: self._under(name).newest_read(to))

    def is_renamed(self, begin: Position, end: Position) -> bool:
        """A RENAME in a range gave the table its rows, or took away those that it had.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        return any(ancestor.begin is not None and ancestor.begin >= begin for ancestor in self.lineage(end))

    def after_last_read(self, begin: Position) -> Position:
        """What is before the last ad-hoc snapshot is not the past of what is in silver now."""
        past = self._under(self.name)
        return max([begin, *(reread.resume_position for reread in past.rereads(past.files()))])

    def is_partial(self, begin: Position, end: Position) -> bool:
        """Some images of a range may hold only some of the columns."""
        files = [
            file for file in self._under(self.name).files() if file.begin < end and file.begin.epoch >= begin.epoch
        ]
        return any(file.partial for file in files)

    def assert_settled(self, past: Sequence[ReplayRange], end: Position) -> None:
        """A snapshot reads rows while they change: they are those of one position where the log is past its end.

        Raises:
            QualityError: `end` is before that.
        """
        if past[0].begin.chunk is None or not self.schema_before(end).primary_key:
            return  # of a table without a key the rows are exactly those where its log goes on
        first = self._under(past[0].table or self.name)
        begun, epoch = first.begun(first.files()), past[0].begin.epoch
        newest = begun.newest_read(end)
        until = begun.overlap_until.get(epoch + 1) if newest is None else newest.until
        if end.chunk is not None or (until is not None and end < until):
            raise QualityError(
                f"{self.shown} was being read until {until or 'its snapshot ended'}: nobody knows all of it at {end}",
                hint="give a position at or behind that",
            )

    def _under(self, name: TableName) -> NamedPast:
        return NamedPast(self.task, self.side, name)

    def schema_before(self, end: Position) -> TableSchema:
        """The table's structure at a position.

        Raises:
            QualityError: it was not there.
        """
        schema = structure_at(self.task.spark, self.side, self.name, end)
        if schema is None:
            raise QualityError(f"{self.shown} was not there at {end}", hint="give another position")
        return schema
