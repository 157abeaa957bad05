"""Compares the row events of a range of the log with bronze's rows of the same range."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.verification.events import MAYBE_SEQUENCE, LoggedColumn, LoggedEvent, LoggedImage, Place
from dmdelta.verification.results import DifferenceCounts
from dmdelta.verification.values import ABSENT, DIFFERENT, Comparison, comparison_of, null_verdict

NOT_IN_IMAGE = "column that the row image omits"
_LEFT_OUT = "cols bitmap"
_REMEMBERED = 1024
_Columns = Mapping[str, tuple[str, Comparison]]


@dataclass(frozen=True, slots=True)
class BronzeRow:
    """A row change in bronze; images are values by column, None if there is no image."""

    place: Place
    table: TableName
    op: str
    row: int
    gtid: str | None
    structure: TableSchema | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class BronzeCount:
    """The number of rows that bronze has of a table and op at a place."""

    place: Place
    table: TableName
    op: str
    rows: int


@dataclass(slots=True)
class EventComparison:
    """Compares a source's events, and counts the results.

    Attributes:
        wanted: whether bronze should have the rows of a table.
    """

    wanted: Callable[[TableName], bool]
    counters: DifferenceCounts
    _known: dict[tuple[int, int], tuple[Sequence[LoggedColumn], TableSchema | None, _Columns]] = field(
        default_factory=dict
    )

    def compare(self, events: Iterable[LoggedEvent], rows: Iterable[BronzeRow], counts: Iterable[BronzeCount]) -> None:
        """Compare all events of a range with all of bronze's rows in it.

        Args:
            rows: rows at the places whose events were read, or that have no event.
            counts: row counts at the places whose events were not read.
        """
        by_place: dict[Place, list[BronzeRow]] = {}
        for row in rows:
            by_place.setdefault(row.place, []).append(row)
        counted: dict[Place, list[BronzeCount]] = {}
        for count in counts:
            counted.setdefault(count.place, []).append(count)
        for event in events:
            if event.unread is not None:
                self._count(event, counted.pop(event.place, []))
            else:
                self._event(event, by_place.pop(event.place, []))
        for place, unmatched in by_place.items():
            for (table, op), number in Counter((row.table, row.op) for row in unmatched).items():
                self.counters.differs(place, table, op, f"{number} rows in bronze, no such row event in the log")

    def _count(self, event: LoggedEvent, found: Sequence[BronzeCount]) -> None:
        """Count an event that was not read; its table and op may still be known."""
        why = event.unread or ""
        if not found:
            if event.table is None:
                self.counters.of(None).unread_events[why] += 1
            elif self.wanted(event.table):
                self.counters.of(event.table).unread_events[why] += 1
                if why != MAYBE_SEQUENCE:
                    self.counters.differs(event.place, event.table, event.op, "the event is not in bronze")
            return
        for table in {count.table for count in found}:
            self.counters.of(table).unread_events[why] += 1
        for count in found:
            self.counters.of(count.table).unread_rows[why] += count.rows
            if event.table is not None and (count.table, count.op) != (event.table, event.op):
                self.counters.differs(event.place, event.table, event.op, f"is {_shown(count)} in bronze")

    def _event(self, event: LoggedEvent, found: Sequence[BronzeRow]) -> None:
        if event.table is None or event.rows is None or (not found and not self.wanted(event.table)):
            return
        counts = self.counters.of(event.table)
        counts.events += 1
        if not found:
            self.counters.differs(
                event.place, event.table, event.op, f"the event ({len(event.rows)} rows) is not in bronze"
            )
            return
        by_number: dict[int, BronzeRow] = {}
        for row in found:
            if row.row in by_number:
                self.counters.differs(
                    event.place, event.table, event.op, "the row is in bronze more than once", row.row
                )
            by_number[row.row] = row
            self._facts(event, row)
        for number in sorted(by_number.keys() - range(len(event.rows))):
            self.counters.differs(event.place, event.table, event.op, "the row is in bronze, not in the log", number)
        for number in range(len(event.rows)):
            if number not in by_number:
                self.counters.differs(event.place, event.table, event.op, "the row is not in bronze", number)
            elif by_number[number].table == event.table:
                counts.rows += 1
                self._row(event, number, by_number[number])

    def _facts(self, event: LoggedEvent, row: BronzeRow) -> None:
        """Compare table, op and GTID of a row with its event."""
        if row.table != event.table or row.op != event.op:
            self.counters.differs(event.place, event.table, event.op, f"is {_shown(row)} in bronze", row.row)
        if event.unread_gtid is not None:
            self.counters.of(event.table).unread_values[event.unread_gtid] += 1
        elif row.gtid != event.gtid:
            self.counters.differs(event.place, event.table, event.op, "has another GTID in bronze", row.row)

    def _row(self, event: LoggedEvent, number: int, row: BronzeRow) -> None:
        assert event.rows is not None
        if not _fits(event, row.structure):
            self.counters.differs(event.place, event.table, event.op, "has no matching schema in bronze", number)
            return
        logged = event.rows[number]
        comparisons = self._of_columns(event, row.structure)
        wrong: list[str] = []
        for word, image, found, instead in (
            ("before", logged.before, row.before, None),
            ("after", logged.after, row.after, logged.before),
        ):
            if (image is None) != (found is None):
                wrong.append(word)
            elif image is not None and found is not None:
                wrong += (f"{word}.{name}" for name in self._image(event, comparisons, (image, instead), found))
        if wrong:
            self.counters.differs(event.place, event.table, event.op, "values differ", number, wrong)

    def _image(
        self,
        event: LoggedEvent,
        comparisons: _Columns,
        logged: tuple[LoggedImage, LoggedImage | None],
        found: Mapping[str, Any],
    ) -> list[str]:
        """The columns that differ.

        Args:
            logged: the image, and the before image: bronze takes the columns from it that the image omits.
        """
        counts = self.counters.of(event.table)
        wrong = []
        for column in event.columns:
            name, comparison = comparisons[column.name]
            value = found.get(name, ABSENT)
            image, instead = logged
            if image.nones.get(column.name) == _LEFT_OUT:
                if value is ABSENT:
                    continue
                if instead is None or instead.nones.get(column.name) == _LEFT_OUT:
                    counts.unread_values[NOT_IN_IMAGE] += 1
                    continue
                image = instead
            read = image.values[column.name]
            if read is None:
                verdict = null_verdict(column, image.nones.get(column.name, ""), value)
            else:
                verdict = DIFFERENT if value is None or value is ABSENT else comparison(read, value)
            if verdict is None:
                counts.values += 1
            elif verdict == DIFFERENT:
                wrong.append(name)
            else:
                counts.unread_values[verdict] += 1
        return wrong + sorted(found.keys() - {name for name, _ in comparisons.values()})

    def _of_columns(self, event: LoggedEvent, structure: TableSchema | None) -> _Columns:
        """For each column of the log, its name in bronze, and how its values are compared."""
        key = (id(event.columns), id(structure))
        known = self._known.get(key)
        if known is None or known[0] is not event.columns or known[1] is not structure:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            columns = {}
            for number, column in enumerate(event.columns):
                described = _described(structure, number)
                name = column.name if column.named or described is None else described.name
                columns[column.name] = name, comparison_of(column, described)
            known = self._known[key] = event.columns, structure, columns
        return known[2]


def _fits(event: LoggedEvent, structure: TableSchema | None) -> bool:
    """Whether the columns of an event have names: in the log, or in bronze's schema."""
    if all(column.named for column in event.columns):
        return True
    return structure is not None and len(structure.columns) == len(event.columns)


def _described(structure: TableSchema | None, number: int) -> Column | None:
    return structure.columns[number] if structure is not None and number < len(structure.columns) else None


def _shown(row: BronzeRow | BronzeCount) -> str:
    return f"{row.op} of {'.'.join(row.table)}"
