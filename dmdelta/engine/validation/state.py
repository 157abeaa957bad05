"""What the validator of a source knows, and its steps: looking at changed rows, looking again, writing it all down."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from dmdelta.config import ValidatorConfig
from dmdelta.engine.validation.comparable_tables import ComparableTables
from dmdelta.engine.validation.row_compare import Range, RowComparer, RowDifferences
from dmdelta.engine.validation.store import RowError, RowId, ValidatorProgress, ValidatorStore, error_id
from dmdelta.errors import DmdeltaError, QualityError
from dmdelta.logging import get_logger
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.pending import ErrorState, ErrorThreshold, PendingRow, newly_pending, plan_recheck
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.schema.range_profile import TableEvents, table_events, tables_with_events
from dmdelta.source.server import server_position

log = get_logger(__name__)
AGAIN_SECONDS = 10.0
"""When pending rows are first looked at again; each time later, up to `MOST_SECONDS`."""
MOST_SECONDS = 300.0
COUNT_SECONDS = 60.0
ROWS_AT_ONCE = 2_000
"""Pending rows of a table that one look is about."""


@dataclass(slots=True)
class Validation:
    """The validator's memory of one source. One thread at a time, but figures may be read by others.

    Attributes:
        looks: the tables as they are looked at.
        held: the tables that do not follow for now.
        position: the changes before it have been looked at.
        validated: rows that were looked at and agreed.
        by_table: the same of each table (`schema.table`).
        pending: rows that differ for now.
        errors: how many there are, by state.
    """

    spark: SparkSession
    side: SilverContext
    config: ValidatorConfig
    store: ValidatorStore
    looks: ComparableTables
    held: Callable[[], Collection[TableName]]
    position: Position | None = None
    validated: int = 0
    by_table: dict[str, int] = field(default_factory=dict)
    pending: dict[RowId, PendingRow] = field(default_factory=dict)
    errors: dict[ErrorState, int] = field(default_factory=dict)
    _left: dict[TableName, Position] = field(default_factory=dict)
    _found: dict[RowId, RowError] = field(default_factory=dict)
    _told: ValidatorProgress = field(default_factory=ValidatorProgress)
    _opened: bool = False
    _changed: bool = False
    _flushed: float = field(default_factory=time.monotonic)
    _counted: float = field(default_factory=time.monotonic)
    _again: float = AGAIN_SECONDS
    _looked_again: float = field(default_factory=time.monotonic)

    def open(self) -> None:
        """Begin where the last run was.

        Raises:
            LakehouseError: what it left cannot be read.
        """
        if self._opened:
            return
        progress, self.pending = self.store.open()
        self._told = progress
        self.position, self.validated = progress.position, progress.validated
        self.by_table = dict(progress.by_table)
        self._left = dict(progress.left)
        held = {".".join(name) for name in self._left}
        self.looks.skipped = {name: why for name, why in progress.skipped.items() if name not in held}
        self.errors = self.store.counts()
        self._opened = True
        self._changed = progress.mode != self.config.mode or progress.trouble is not None

    def begin_at(self, position: Position) -> None:
        """Where the first range of all begins."""
        if self.position is None:
            self.position = position

    def look_up_to(self, end: Position) -> None:
        """Look at the rows that silver has got from the log up to `end`, and at what held tables have caught up.

        Raises:
            QualityError: too many rows differ.
            DmdeltaError: bronze, silver or the source cannot be read; what was looked at is looked at again.
        """
        begin = self.position if self.position is not None else end
        news = end > begin or bool(self._left.keys() - set(self.held()))
        if news:
            before = dict(self.pending), self.validated, dict(self.by_table)
            try:
                for events, part in self._work(Range(begin, end)):
                    self._look_at(events, part)
                    if self.looks.stop.requested:
                        break
            except Exception:
                self.pending, self.validated, self.by_table = before
                raise
        if self.looks.stop.requested:
            return
        if news or self.position is None:
            self.position, self._changed = end, True

    def recheck(self, *, at_once: bool = False) -> None:
        """Look at pending rows again, if it is time: rows that agree now have settled, others have become errors.

        Args:
            at_once: whether it is time or not.

        Raises:
            DmdeltaError: as `look_up_to`.
        """
        if not self.pending or self.position is None or not (at_once or self._is_time(self.position)):
            return
        by_table: dict[TableName, list[PendingRow]] = defaultdict(list)
        for (name, _), row in self.pending.items():
            by_table[name].append(row)
        held = self.held()
        for name, rows in by_table.items():
            for first in range(0, len(rows), ROWS_AT_ONCE):
                if name not in held and not self.looks.stop.requested:
                    self._settle(name, rows[first : first + ROWS_AT_ONCE], self.position)
        self._looked_again, self._again = time.monotonic(), min(2 * self._again, MOST_SECONDS)

    def is_due(self, interval: float) -> bool:
        """There is something to write down, and the last time was so many seconds ago."""
        return self._changed and time.monotonic() - self._flushed >= interval

    def flush(self) -> None:
        """Write down where this is, if anything has changed.

        Raises:
            LakehouseError: the commit failed.
        """
        if not self._changed:
            return
        found, self._told = dict(self._found), self._progress()
        self.store.flush(self._told, self.pending, list(found.values()))
        self._changed, self._flushed = False, time.monotonic()
        for at in found:
            self._found.pop(at)
        if found or any(self.errors.values()):
            self._count_errors()

    def tell_trouble(self, why: str) -> None:
        """Write down why this does not go on, beside what was last written; the next flush takes it back."""
        self._changed = True
        if self._opened and self._told.trouble != why:
            self._told = replace(self._told, trouble=why)
            with suppress(DmdeltaError):  # told in the log already; dm_meta may be the trouble
                self.store.publish(self._told)

    def see_decisions(self) -> None:
        """Count the errors anew, now and then while there are new ones: somebody may have decided about them.

        Raises:
            LakehouseError: dm_meta cannot be read.
        """
        if self.errors.get(ErrorState.NEW) and time.monotonic() - self._counted >= COUNT_SECONDS:
            self._count_errors()

    def _count_errors(self) -> None:
        self.errors, self._counted = self.store.counts(), time.monotonic()

    def _progress(self) -> ValidatorProgress:
        held = {".".join(name): "held, its changes are looked at when it goes on" for name in self._left}
        skipped = {**self.looks.skipped, **held}
        progress = ValidatorProgress(self.position, self.config.mode, self.validated, skipped, dict(self._left))
        return replace(progress, by_table=dict(self.by_table))

    def _work(self, part: Range) -> list[tuple[TableEvents, Range]]:
        """The tables with changes in a range, each with the part of the log that is due."""
        spark, side, held = self.spark, self.side, self.held()
        found = tables_with_events(spark, side.lakehouse, side.source_id, part.begin, part.end)
        wanted = {events.name: events for events in found if side.rules.wanted(*events.name)}
        for name in wanted.keys() & set(held):
            self._left.setdefault(name, part.begin)
        work = [(events, part) for name, events in wanted.items() if name not in self._left]
        for name in self._left.keys() - set(held):
            rest = Range(self._left[name], part.end)
            events = table_events(spark, side.lakehouse, side.source_id, name, rest.begin, rest.end)
            work.append((events, rest))
            if not _changes_rows(events):
                self._left.pop(name)
        for events, _ in work:
            if events.ddl:
                self.looks.forget(events.name)
        due = [(events, rest) for events, rest in work if _changes_rows(events)]
        self.looks.open({events.name for events, _ in due})
        return due

    def _look_at(self, events: TableEvents, part: Range) -> None:
        """The rows of one table that a range has changed; a table that cannot be looked at is named."""
        name = events.name

        def look_at_all(look: RowComparer) -> None:
            for looked in look.changed(part, events):
                self._take_over(name, looked, part.end.epoch)
                if self.looks.stop.requested:
                    return

        self.looks.use(name, look_at_all, f"its changes from {part.begin} to {part.end}")
        if not self.looks.stop.requested:
            self._left.pop(name, None)

    def _take_over(self, name: TableName, looked: RowDifferences, epoch: int) -> None:
        """What changed rows are: clocks of those that differ begin anew. The source's log is in `epoch` now."""
        for key in looked.keys:
            self.pending.pop((name, key.text), None)
        if looked.kinds:
            end = server_position(self.looks.connection)
            position = Position(epoch, end.binlog_file, end.offset)
            found = newly_pending(looked.keys, looked.kinds, datetime.now(timezone.utc), position)
            self.pending |= {(name, text): row for text, row in found.items()}
            self._again = AGAIN_SECONDS
        self._agreed(name, looked.agreed)
        self._changed = True
        if len(self.pending) > self.config.max_pending_row_count:
            raise QualityError(
                f"more than {self.config.max_pending_row_count:,} rows differ from the source",
                hint="they are looked at again later: silver may be far behind the source; if it is not, "
                "`dmdelta validate SPEC` shows what differs",
            )

    def _agreed(self, name: TableName, rows: int) -> None:
        self.validated += rows
        self.by_table[".".join(name)] = self.by_table.get(".".join(name), 0) + rows

    def _is_time(self, reached: Position) -> bool:
        if time.monotonic() - self._looked_again >= self._again:
            return True
        patience = self._patience(reached)
        return any(map(patience.is_over, self.pending.values()))

    def _patience(self, reached: Position) -> ErrorThreshold:
        return ErrorThreshold(self.config.row_error_delay, datetime.now(timezone.utc), reached)

    def _settle(self, name: TableName, rows: Sequence[PendingRow], reached: Position) -> None:
        """Another look at pending rows of a table; those of a table that cannot be looked at are given up."""
        still: tuple[PendingRow, ...] = ()

        def look_at_all(look: RowComparer) -> None:
            nonlocal still
            looked = look.again([row.key for row in rows])
            settling = plan_recheck(rows, looked.kinds, self._patience(reached))
            self._record(look, settling.errors)
            self._agreed(name, looked.agreed)
            still = settling.pending

        self.looks.use(name, look_at_all, f"{len(rows)} pending rows")
        for row in rows:
            self.pending.pop((name, row.key.text))
        self.pending |= {(name, row.key.text): row for row in still}
        self._changed = True

    def _record(self, look: RowComparer, rows: Sequence[PendingRow]) -> None:
        """Rows that have differed for too long; those that somebody ignores stay so."""
        if not rows:
            return
        states, name = self.store.states(), look.name
        values = look.values([row.key for row in rows])
        for row in rows:
            at = (name, row.key.text)
            error = error_id(self.side.source_id, at)
            state = ErrorState.IGNORED if states.get(error) is ErrorState.IGNORED else ErrorState.NEW
            told = values.get(row.key.text, {})
            self._found[at] = RowError(
                error, self.side.source_id, *name, row.key.text, row.kind, state, row.since, told
            )
        # No keys: they are values of rows.
        log.warning("rows differ from the source", source=self.side.source_id, table=".".join(name), rows=len(rows))


def _changes_rows(events: TableEvents) -> bool:
    """The log changed rows of a table; those that a snapshot read are not looked at."""
    return any(op is not Op.READ for op in events.rows)
