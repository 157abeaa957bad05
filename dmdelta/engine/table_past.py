"""A table's past as the task's records tell it: what bronze holds of it, and which snapshots began it again."""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.bronze.landing import LandingSource, landing_app
from dmdelta.bronze.retention import expired_to, forgotten, is_forgotten
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.engine.chunk_store import ChunkStore
from dmdelta.engine.requests import SilverSide
from dmdelta.engine.task import Task
from dmdelta.errors import QualityError
from dmdelta.lakehouse.history import CommitTag, own_commits
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.past import Beginnings, FileRows, Reread, Stretch, files_of, plan_past
from dmdelta.silver.state import silver_app
from dmdelta.silver.structure import SourceLog, structure_at


@dataclass(frozen=True, slots=True)
class TablePast:
    """The past of one source table."""

    task: Task
    side: SilverSide
    name: TableName

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def until(self, end: Position) -> tuple[Stretch, ...]:
        """The stretches that make the table as it was at a position.

        Raises:
            QualityError: there are none, or rows are not in bronze: what a snapshot read, or what has expired.
        """
        source = self.task.landing_source(self.side.source_id, self.side.flavor)
        expired, files = expired_to(self.task.spark, source), self._files()
        try:
            found = plan_past(files, end, self._begun(files))
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

    def _assert_kept(self, past: Sequence[Stretch], source: LandingSource, expired: Position) -> None:
        for stretch in past:
            reread = stretch.begin.epoch < 0
            if is_forgotten(self.task.spark, source, stretch.begin.epoch) if reread else stretch.begin <= expired:
                raise forgotten(source.source_id, expired)

    def _files(self) -> list[FileRows]:
        return files_of(self.task.spark, self.task.lakehouse, self.side.source_id, self.name)

    def _begun(self, files: Sequence[FileRows]) -> Beginnings:
        spark, bronze, source_id = self.task.spark, self.task.lakehouse.bronze, self.side.source_id
        exact = exact_positions(spark, bronze, source_id).get(self.name)
        marks = self._marks(bronze, landing_app(self.task.spec.name, source_id))
        return Beginnings(
            self._rereads(files),
            {exact.epoch: exact} if exact else {},
            {tag.end.epoch: tag.safe_until or tag.end for tag in marks},
        )

    def _marks(self, place: str, app: str) -> list[CommitTag]:
        """Of the commits that say where a log is begun."""
        tags = (commit.tag for commit in own_commits(self.task.spark, place, app))
        return [tag for tag in tags if tag.begin == tag.end and tag.end.chunk is None and not tag.again]

    def _rereads(self, files: Sequence[FileRows]) -> list[Reread]:
        """The ad-hoc snapshots that silver was made of."""
        task, side = self.task, self.side
        epochs = {file.begin.epoch for file in files if file.begin.epoch < 0}
        if not epochs:
            return []
        store = ChunkStore(task.spark, task.lakehouse, task.spec.name, side.source_id, task.run)
        marks = self._marks(side.table(self.name).place, silver_app(side.task, side.source_id, *self.name))
        found: list[Reread] = []
        for epoch in epochs - {store.awaited().epoch}:
            log_begin = store.load(epoch, side.flavor).log_begin
            exact = exact_positions(task.spark, task.lakehouse.bronze, side.source_id, (epoch, log_begin.epoch))
            goes_on = exact.get(self.name, log_begin)
            until = next((tag.safe_until or tag.end for tag in marks if tag.end == goes_on), None)
            found.append(Reread(epoch, goes_on, until))
        return found

    def after_last_read(self, begin: Position) -> Position:
        """What is before the last ad-hoc snapshot is not the past of what is in silver now."""
        return max([begin, *(reread.goes_on for reread in self._rereads(self._files()))])

    def is_partial(self, begin: Position, end: Position) -> bool:
        """Some images of a range may hold only some of the columns."""
        files = [file for file in self._files() if file.begin < end and file.begin.epoch >= begin.epoch]
        return any(file.partial for file in files)

    def assert_settled(self, past: Sequence[Stretch], end: Position) -> None:
        """A snapshot reads rows while they change: they are those of one position where the log is past its end.

        Raises:
            QualityError: `end` is before that.
        """
        if past[0].begin.chunk is None or not self.schema_before(end).primary_key:
            return  # of a table without a key the rows are exactly those where its log goes on
        begun, epoch = self._begun(self._files()), past[0].begin.epoch
        newest = begun.newest_read(end)
        until = begun.again_until.get(epoch + 1) if newest is None else newest.until
        if end.chunk is not None or (until is not None and end < until):
            raise QualityError(
                f"{self.shown} was being read until {until or 'its snapshot ended'}: nobody knows all of it at {end}",
                hint="give a position at or behind that",
            )

    def schema_before(self, end: Position) -> TableSchema:
        """The table's structure at a position.

        Raises:
            QualityError: it was not there.
        """
        lakehouse, side = self.task.lakehouse, self.side
        schema = structure_at(
            self.task.spark, SourceLog(lakehouse, side.source_id, side.flavor, side.rules), self.name, end
        )
        if schema is None:
            raise QualityError(f"{self.shown} was not there at {end}", hint="give another position")
        return schema
