"""The results of verifying bronze: counts and positions, never values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dmdelta.model.schema import TableName
from dmdelta.verification.events import Place

MOST_DIFFERENCES = 100
"""Maximum number of differences that are listed per table; all are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between bronze and the log.

    Attributes:
        position: the start of the row event, with the epoch: `1/binlog.000001:4711`.
        what: a description.
        row: the row's number in the event, from 0; None: the whole event.
        columns: the columns whose values differ, with the image: `after.total`.
    """

    source: str
    position: str
    table: str
    op: str
    what: str
    row: int | None = None
    columns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NotCovered:
    """The numbers of row events, rows (in bronze) and single values that were not compared for one reason."""

    reason: str
    events: int = 0
    rows: int = 0
    values: int = 0


@dataclass(frozen=True, slots=True)
class TableResult:
    """The result of one table; `table` is empty for events of unknown tables.

    Attributes:
        events, rows, values: numbers of what was compared.
        differences: number of differences.
    """

    source: str
    table: str
    events: int
    rows: int
    values: int
    differences: int
    not_covered: Sequence[NotCovered]


@dataclass(slots=True)
class TableTally:
    """The counts of a table while the check runs."""

    events: int = 0
    rows: int = 0
    values: int = 0
    differences: int = 0
    listed: list[Difference] = field(default_factory=list)
    unread_events: Counter[str] = field(default_factory=Counter)
    unread_rows: Counter[str] = field(default_factory=Counter)
    unread_values: Counter[str] = field(default_factory=Counter)

    def result(self, source: str, table: TableName | None) -> TableResult:
        reasons = sorted({*self.unread_events, *self.unread_rows, *self.unread_values})
        missed = [
            NotCovered(why, self.unread_events[why], self.unread_rows[why], self.unread_values[why]) for why in reasons
        ]
        name = ".".join(table) if table is not None else ""
        return TableResult(
            source=source,
            table=name,
            events=self.events,
            rows=self.rows,
            values=self.values,
            differences=self.differences,
            not_covered=missed,
        )


class DifferenceCounts:
    """The counts of a source's tables while the check runs.

    Attributes:
        epoch: the epoch of the log that is being compared.
    """

    def __init__(self, source: str, epoch: int = 1) -> None:
        self._source = source
        self.epoch = epoch
        self._tables: dict[TableName | None, TableTally] = {}

    def of(self, table: TableName | None) -> TableTally:
        return self._tables.setdefault(table, TableTally())

    def differs(
        self,
        place: Place,
        table: TableName | None,
        op: str | None,
        what: str,
        row: int | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        """Count a difference, and list it unless `MOST_DIFFERENCES` are listed."""
        counts = self.of(table)
        counts.differences += 1
        if len(counts.listed) < MOST_DIFFERENCES:
            name = ".".join(table) if table is not None else ""
            position = f"{self.epoch}/{place[0]}:{place[1]}"
            counts.listed.append(
                Difference(
                    source=self._source,
                    position=position,
                    table=name,
                    op=op or "",
                    what=what,
                    row=row,
                    columns=tuple(columns),
                )
            )

    def tables(self) -> list[TableResult]:
        """Each table's result, by name."""
        named = sorted(self._tables.items(), key=lambda item: item[0] or ("", ""))
        return [counters.result(self._source, table) for table, counters in named]

    def differences(self) -> list[Difference]:
        """The listed differences, table by table."""
        return [
            one
            for _, counters in sorted(self._tables.items(), key=lambda i: i[0] or ("", ""))
            for one in counters.listed
        ]
