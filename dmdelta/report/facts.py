"""The contents of a report. No row values: names, positions, counts and times."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dmdelta.engine.telemetry.task_status import TaskStatus

OPS = ("insert", "update", "delete", "read")
"""The kinds of row changes, in stacking order; `read`: by a snapshot."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a report covers: [since, until), in UTC.

    Attributes:
        asked: the requested length; the window ends at the newest commit and starts at the first at the earliest.
        cut: it starts later than requested, because a table's history has more commits than a report reads.
    """

    since: datetime
    until: datetime
    asked: timedelta
    cut: bool = False

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


@dataclass(frozen=True, slots=True)
class Pace:
    """The landing batches that were committed in one time bucket of the window.

    Attributes:
        at: the start of the bucket.
        land_seconds: of the slowest batch: from the start of reading its segments to the commit in bronze.
        apply_seconds: of the slowest batch: from there to the last silver commit; None: silver had no changes.
        bronze_lag, silver_lag: the maximum age of a batch's newest change at the commit, in seconds.
    """

    at: datetime
    batches: int
    land_seconds: float | None
    apply_seconds: float | None
    bronze_lag: float | None
    silver_lag: float | None


@dataclass(frozen=True, slots=True)
class RowsLanded:
    """The row changes that landed in one time bucket of the window, by op."""

    at: datetime
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TableActivity:
    """The activity of one source table in the window.

    Attributes:
        rows: row changes that landed, by op.
        newest_change: when the last of them was committed at the source.
        silver_at: silver's newest commit for it; None if the retained history has none.
        silver_lag: age in seconds of the table's newest change when silver applied it; None: not yet, or meaningless.
        behind: silver has not applied the newest change yet.
    """

    source_id: str
    table: str
    rows: Mapping[str, int]
    newest_change: datetime | None = None
    silver_at: datetime | None = None
    silver_lag: float | None = None
    behind: bool = False

    @property
    def total(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A statement on a table, without its literals."""

    at: datetime | None
    source_id: str
    table: str
    position: str
    statement: str


@dataclass(frozen=True, slots=True)
class SafeRange:
    """A range of the log that was applied in safe mode, as recorded in commits.

    Attributes:
        begin, end: positions; safe mode ends at `end`.
        first, last: the commits that name it.
        over: a later commit is at or after `end`.
    """

    source_id: str
    begin: str
    end: str
    first: datetime
    last: datetime
    over: bool


@dataclass(frozen=True, slots=True)
class ChecksRun:
    """The checks of data that ran in one time bucket of the window."""

    at: datetime
    passed: int
    failed: int


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that failed when it last told of itself in the window.

    Attributes:
        scope: which rows were judged (`dmdelta.quality.results.Scope`).
        begin, end: of the range of the log, as text; `begin` is None where all rows were judged.
    """

    at: datetime
    table: str
    expectation: str
    unexpected: int | None
    evaluated: int | None
    on_failure: str | None
    scope: str | None = None
    begin: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True)
class Checks:
    """The stored results of `dmdelta quality` and of the validator.

    Attributes:
        validator: number of rows that differ from the source, by state.
    """

    runs: tuple[ChecksRun, ...] = ()
    failed: tuple[FailedCheck, ...] = ()
    validator: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """
    Attributes:
        window: None: nothing has ever landed.
        always_safe: the spec says `safe-mode: true`.
        tables: those with the most changes, most first; `table_count` counts all that changed.
        schema_changes: the newest, newest first; `schema_change_count` counts all of the window.
    """

    status: TaskStatus
    made_at: datetime
    version: str
    always_safe: bool = False
    window: Window | None = None
    paces: tuple[Pace, ...] = ()
    rows: tuple[RowsLanded, ...] = ()
    tables: tuple[TableActivity, ...] = ()
    table_count: int = 0
    schema_changes: tuple[SchemaChange, ...] = ()
    schema_change_count: int = 0
    safe_ranges: tuple[SafeRange, ...] = ()
    checks: Checks = Checks()

    @property
    def row_count(self) -> int:
        return sum(sum(stretch.rows.values()) for stretch in self.rows)
