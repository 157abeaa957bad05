"""The validator's state for one source, and its steps: compare changed rows, recheck pending rows, flush the state."""

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
"""Delay before pending rows are rechecked; doubles with each recheck, up to `MOST_SECONDS`."""
MOST_SECONDS = 300.0
COUNT_SECONDS = 60.0
ROWS_AT_ONCE = 2_000
"""Pending rows of a table that are compared at once."""


@dataclass(slots=True)
class Validation:
    """The validator's state for one source. One thread at a time, but any thread may read the figures.

    Attributes:
        looks: compares the tables' rows.
        held: returns the tables that are paused.
        position: changes before it were compared.
        validated: number of rows that were compared and are equal.
        by_table: the same for each table (`schema.table`).
        pending: rows that differ, but not long enough to be errors.
        errors: number of errors, by state.
    """

    spark: SparkSession
    context: SilverContext
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
    _unwritten: dict[RowId, RowError] = field(default_factory=dict)
    _published: ValidatorProgress = field(default_factory=ValidatorProgress)
    _opened: bool = False
    _changed: bool = False
    _flushed: float = field(default_factory=time.monotonic)
    _counted: float = field(default_factory=time.monotonic)
    _again: float = AGAIN_SECONDS
    _rechecked: float = field(default_factory=time.monotonic)

    def open(self) -> None:
        """Resume from the state of the last run.

        Raises:
            LakehouseError: its state cannot be read.
        """
        if self._opened:
            return
        progress, self.pending = self.store.open()
        self._published = progress
        self.position, self.validated = progress.position, progress.validated
        self.by_table = dict(progress.by_table)
        self._left = dict(progress.left)
        held = {".".join(name) for name in self._left}
        self.looks.skipped = {name: why for name, why in progress.skipped.items() if name not in held}
        self.errors = self.store.counts()
        self._opened = True
        self._changed = progress.mode != self.config.mode or progress.trouble is not None

    @property
    def trouble(self) -> str | None:
        """Why there is no progress; None if there is."""
        return self._published.trouble

    def begin_at(self, position: Position) -> None:
        """Set where validation begins, unless it has begun in an earlier run."""
        if self.position is None:
            self.position = position

    def look_up_to(self, end: Position) -> None:
        """Compare the rows that silver received from the log up to `end`, and the changes of resumed tables.

        Raises:
            QualityError: too many rows differ.
            DmdeltaError: bronze, silver or the source cannot be read; the rows are compared again later.
        """
        begin = self.position if self.position is not None else end
        news = end > begin or bool(self._left.keys() - set(self.held()))
        if news:
            before = dict(self.pending), self.validated, dict(self.by_table), dict(self._left)
            try:
                for events, part in self._work(Range(begin, end)):
                    self._compare(events, part)
                    if self.looks.stop.requested:
                        break
            except Exception:
                self.pending, self.validated, self.by_table, self._left = before
                raise
        if self.looks.stop.requested:
            return
        if news or self.position is None:
            self.position, self._changed = end, True

    def recheck(self, *, at_once: bool = False) -> None:
        """Compare pending rows again, if it is due: equal rows are no longer pending, others may become errors.

        Args:
            at_once: do not wait until it is due.

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
                    self._recheck_rows(name, rows[first : first + ROWS_AT_ONCE], self.position)
        self._rechecked, self._again = time.monotonic(), min(2 * self._again, MOST_SECONDS)

    def is_due(self, interval: float) -> bool:
        """Whether there are unwritten changes, and the last flush was at least `interval` seconds ago."""
        return self._changed and time.monotonic() - self._flushed >= interval

    def flush(self) -> None:
        """Write the state, if it has changed.

        Raises:
            LakehouseError: the commit failed.
        """
        if not self._changed:
            return
        errors, self._published = dict(self._unwritten), self._progress()
        self.store.flush(self._published, self.pending, list(errors.values()))
        self._changed, self._flushed = False, time.monotonic()
        for at in errors:
            self._unwritten.pop(at)
        if errors or any(self.errors.values()):
            self._count_errors()

    def tell_trouble(self, why: str) -> None:
        """Publish why there is no progress, with the last written state; the next flush clears it."""
        self._changed = True
        if self._opened and self._published.trouble != why:
            self._published = replace(self._published, trouble=why)
            with suppress(DmdeltaError):  # logged already; dm_meta may be the cause
                self.store.publish(self._published)

    def load_decisions(self) -> None:
        """Recount the errors periodically while there are new ones: operators may have decided on them.

        Raises:
            LakehouseError: dm_meta cannot be read.
        """
        if self.errors.get(ErrorState.NEW) and time.monotonic() - self._counted >= COUNT_SECONDS:
            self._count_errors()

    def _count_errors(self) -> None:
        self.errors, self._counted = self.store.counts(), time.monotonic()

    def _progress(self) -> ValidatorProgress:
        held = {".".join(name): "paused; its changes are compared after it resumes" for name in self._left}
        skipped = {**self.looks.skipped, **held}
        progress = ValidatorProgress(self.position, self.config.mode, self.validated, skipped, dict(self._left))
        return replace(progress, by_table=dict(self.by_table))

    def _work(self, part: Range) -> list[tuple[TableEvents, Range]]:
        """The tables with changes in a range, each with the part of the log to compare."""
        spark, context, held = self.spark, self.context, self.held()
        found = tables_with_events(spark, context, part.begin, part.end)
        wanted = {events.name: events for events in found if context.rules.wanted(*events.name)}
        for name in wanted.keys() & set(held):
            self._left.setdefault(name, part.begin)
        work = [(events, part) for name, events in wanted.items() if name not in self._left]
        for name in self._left.keys() - set(held):
            rest = Range(self._left[name], part.end)
            events = table_events(spark, context, name, rest.begin, rest.end)
            work.append((events, rest))
            if not _changes_rows(events):
                self._left.pop(name)
        for events, _ in work:
            if events.ddl:
                self.looks.forget(events.name)
        due = [(events, rest) for events, rest in work if _changes_rows(events)]
        self.looks.open({events.name for events, _ in due})
        return due

    def _compare(self, events: TableEvents, part: Range) -> None:
        """Compare the rows of a table that a range changed; a table that cannot be compared is reported as skipped."""
        name = events.name

        def compare(comparer: RowComparer) -> None:
            for compared in comparer.changed(part, events):
                self._record_differences(name, compared, part.end.epoch)
                if self.looks.stop.requested:
                    return

        self.looks.use(name, compare, f"its changes from {part.begin} to {part.end}")
        if not self.looks.stop.requested:
            self._left.pop(name, None)

    def _record_differences(self, name: TableName, compared: RowDifferences, epoch: int) -> None:
        """Update the state of changed rows: the delay of differing ones restarts. `epoch` is that of the source now."""
        for key in compared.keys:
            self.pending.pop((name, key.text), None)
        if compared.kinds:
            end = server_position(self.looks.connection)
            position = Position(epoch, end.binlog_file, end.offset)
            found = newly_pending(compared.keys, compared.kinds, datetime.now(timezone.utc), position)
            self.pending |= {(name, text): row for text, row in found.items()}
            self._again = AGAIN_SECONDS
        self._agreed(name, compared.agreed)
        self._changed = True
        if len(self.pending) > self.config.max_pending_row_count:
            raise QualityError(
                f"more than {self.config.max_pending_row_count:,} rows differ from the source",
                hint="silver may lag far behind the source: the rows are compared again later. If it does not lag, "
                "`dmdelta validate SPEC` shows the differences",
            )

    def _agreed(self, name: TableName, rows: int) -> None:
        self.validated += rows
        self.by_table[".".join(name)] = self.by_table.get(".".join(name), 0) + rows

    def _is_time(self, reached: Position) -> bool:
        if time.monotonic() - self._rechecked >= self._again:
            return True
        threshold = self._threshold(reached)
        return any(map(threshold.is_over, self.pending.values()))

    def _threshold(self, reached: Position) -> ErrorThreshold:
        return ErrorThreshold(self.config.row_error_delay, datetime.now(timezone.utc), reached)

    def _recheck_rows(self, name: TableName, rows: Sequence[PendingRow], reached: Position) -> None:
        """Compare pending rows of a table again; rows of a table that cannot be compared are no longer pending."""
        still: tuple[PendingRow, ...] = ()

        def compare(comparer: RowComparer) -> None:
            nonlocal still
            compared = comparer.again([row.key for row in rows])
            result = plan_recheck(rows, compared.kinds, self._threshold(reached))
            self._record_errors(comparer, result.errors)
            self._agreed(name, compared.agreed)
            still = result.pending

        self.looks.use(name, compare, f"{len(rows)} pending rows")
        for row in rows:
            self.pending.pop((name, row.key.text))
        self.pending |= {(name, row.key.text): row for row in still}
        self._changed = True

    def _record_errors(self, comparer: RowComparer, rows: Sequence[PendingRow]) -> None:
        """Record rows that differ beyond the delay as errors; ignored ones stay ignored."""
        if not rows:
            return
        states, name = self.store.states(), comparer.name
        values = comparer.values([row.key for row in rows])
        for row in rows:
            at = (name, row.key.text)
            error = error_id(self.context.source_id, at)
            state = ErrorState.IGNORED if states.get(error) is ErrorState.IGNORED else ErrorState.NEW
            texts = values.get(row.key.text, {})
            self._unwritten[at] = RowError(
                error=error,
                source_id=self.context.source_id,
                schema=name[0],
                table=name[1],
                key=row.key.text,
                kind=row.kind,
                state=state,
                since=row.since,
                values=texts,
            )
        # No keys in the log: they are row values.
        log.warning("rows differ from the source", source=self.context.source_id, table=".".join(name), rows=len(rows))


def _changes_rows(events: TableEvents) -> bool:
    """Whether the log changed rows of a table; rows of a snapshot are not compared."""
    return any(op is not Op.READ for op in events.rows)
