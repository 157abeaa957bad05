"""The progress of a run, while it runs and at its end."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dmdelta.silver.apply.request import ApplyResult

NEWEST_SHARE = 0.3
"""The weight of the newest value in the moving average of durations."""


def smoothed(before: float | None, newest: float) -> float:
    """The moving average of durations with the newest one; `before` is the average so far, None for the first."""
    return newest if before is None else before + NEWEST_SHARE * (newest - before)


Labels = tuple[str, ...]
"""The labels of a counter: a source, and further dimensions."""


@dataclass(frozen=True, slots=True)
class TableLoad:
    """The progress of the full load of one table.

    Attributes:
        chunks, all_chunks: landed and planned.
        rows_per_second: in this run; None before the first chunk.
        rows_per_second: of this run; None before the first chunk.
        seconds_left: at that rate.
    """

    chunks: int
    all_chunks: int
    rows: int
    all_rows: int
    rows_per_second: float | None = None
    seconds_left: float | None = None


@dataclass(slots=True)
class _Load:
    """The counters of the full load of one table; `resumed` rows had landed before this run."""

    all_chunks: int = 0
    all_rows: int = 0
    chunks: int = 0
    rows: int = 0
    resumed: int = 0

    def after(self, seconds: float) -> TableLoad:
        rows_of_run = self.rows - self.resumed
        rate = rows_of_run / seconds if rows_of_run and seconds else None
        left = (self.all_rows - self.rows) / rate if rate else None
        return TableLoad(self.chunks, self.all_chunks, self.rows, self.all_rows, rate, left)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run at one moment.

    Attributes:
        loads: of tables that are loaded in this run, by silver table.
        landed_batches, landed_to: of this run; the end of bronze, by source.
        applied_rows: row changes applied in this run, before compaction.
        tables: row changes by silver table (`schema.table`).
        clashes: keys that occur in several shards, by the later shard (`schema.table`).
    """

    seconds: float
    landed_batches: int
    landed_to: dict[str, str]
    applied_rows: int
    tables: dict[str, int]
    loads: dict[str, TableLoad] = field(default_factory=dict)
    clashes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result of a run; `stopped` if a stop was requested, else it had caught up."""

    progress: Progress
    stopped: bool

    @property
    def is_idle(self) -> bool:
        """There were no new changes."""
        return not self.progress.landed_batches and not self.progress.applied_rows


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters of a run, by labels.

    Attributes:
        rows: row changes applied, before compaction, by source, table (`schema.table`) and op.
        commits: of silver tables, by source and step.
        clashes: keys that occur in several shards, by source and table.
        failures: rows that fail an expectation, by source, table and expectation.
        ranges: applied ranges of tables with row changes, by source and path (`RowsPath`).
        spent: number and total duration (seconds), by source and phase.
    """

    rows: Mapping[Labels, int]
    commits: Mapping[Labels, int]
    clashes: Mapping[Labels, int]
    failures: Mapping[Labels, int]
    spent: Mapping[Labels, tuple[int, float]]
    maintenance: Mapping[Labels, int] = field(default_factory=dict)
    ranges: Mapping[Labels, int] = field(default_factory=dict)


@dataclass(slots=True)
class RunCounters:
    """Counts what the loops report, from any thread, and passes the progress on."""

    listener: Callable[[Progress], None]
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _batches: int = 0
    _landed_to: dict[str, str] = field(default_factory=dict)
    _rows: Counter[Labels] = field(default_factory=Counter)
    _commits: Counter[Labels] = field(default_factory=Counter)
    _clashes: Counter[Labels] = field(default_factory=Counter)
    _failures: Counter[Labels] = field(default_factory=Counter)
    _ranges: Counter[Labels] = field(default_factory=Counter)
    _maintenance: Counter[Labels] = field(default_factory=Counter)
    _spent: dict[Labels, tuple[int, float]] = field(default_factory=dict)
    _recent: dict[Labels, float] = field(default_factory=dict)
    _loads: dict[str, _Load] = field(default_factory=dict)
    _load_began: float = 0.0

    def loading(self, chunks: Iterable[tuple[str, int]], landed: Iterable[tuple[str, int]]) -> None:
        """A full load starts or resumes: (table, rows) of all its chunks, and of those that have landed."""
        with self._lock:
            self._load_began = time.monotonic()
            planned = list(chunks)
            self._loads |= {table: _Load() for table, _ in planned}
            for table, rows in planned:
                load = self._loads[table]
                load.all_chunks += 1
                load.all_rows += rows
            self._count(landed)
            for load in self._loads.values():
                load.resumed = load.rows
        self.listener(self.now())

    def loaded(self, chunks: Iterable[tuple[str, int]]) -> None:
        """(table, rows) of chunks that have just landed."""
        with self._lock:
            self._count(chunks)
        self.listener(self.now())

    def _count(self, chunks: Iterable[tuple[str, int]]) -> None:
        for table, rows in chunks:
            self._loads[table].chunks += 1
            self._loads[table].rows += rows

    def landed(self, source_id: str, end: str) -> None:
        with self._lock:
            self._batches += 1
            self._landed_to[source_id] = end
        self.listener(self.now())

    @property
    def batches(self) -> int:
        """The number of landed batches of all sources."""
        with self._lock:
            return self._batches

    def applied(self, source_id: str, result: ApplyResult) -> None:
        with self._lock:
            table = f"{result.schema}.{result.table}"
            self._rows.update({(source_id, table, op.value): rows for op, rows in result.rows.items()})
            self._commits.update((source_id, step.value) for step in result.steps)
            self._clashes[source_id, table] += result.clashes
            if result.path is not None:
                self._ranges[source_id, result.path.value] += 1
        self.listener(self.now())

    def failed(self, source_id: str, table: str, failures: Mapping[str, int]) -> None:
        with self._lock:
            self._failures.update({(source_id, table, check): rows for check, rows in failures.items()})

    def maintained(self, action: str) -> None:
        with self._lock:
            self._maintenance[(action,)] += 1

    @contextmanager
    def spending(self, source_id: str, phase: str) -> Iterator[None]:
        """Time a phase; a failed one is not counted."""
        began = time.monotonic()
        yield
        self.spent(source_id, phase, time.monotonic() - began)

    def spent(self, source_id: str, phase: str, seconds: float) -> None:
        """A phase took `seconds`."""
        with self._lock:
            times, total = self._spent.get((source_id, phase), (0, 0.0))
            self._spent[source_id, phase] = (times + 1, total + seconds)
            self._recent[source_id, phase] = smoothed(self._recent.get((source_id, phase)), seconds)

    def recent(self, source_id: str, phase: str) -> float:
        """The recent average duration of a phase, in seconds; 0 before the first time."""
        with self._lock:
            return self._recent.get((source_id, phase), 0.0)

    def counts(self) -> Counts:
        with self._lock:
            return Counts(
                rows=dict(self._rows),
                commits=dict(self._commits),
                clashes={labels: keys for labels, keys in self._clashes.items() if keys},
                failures=dict(self._failures),
                spent=dict(self._spent),
                maintenance=dict(self._maintenance),
                ranges=dict(self._ranges),
            )

    def now(self) -> Progress:
        with self._lock:
            seconds = time.monotonic() - self._began
            tables, clashes = _by_table(self._rows), _by_table(+self._clashes)
            loading = time.monotonic() - self._load_began
            loads = {table: load.after(loading) for table, load in self._loads.items()}
            rows = sum(tables.values())
            return Progress(
                seconds=seconds,
                landed_batches=self._batches,
                landed_to=dict(self._landed_to),
                applied_rows=rows,
                tables=tables,
                loads=loads,
                clashes=clashes,
            )


def _by_table(counted: Mapping[Labels, int]) -> dict[str, int]:
    """Sums by the second label."""
    sums: Counter[str] = Counter()
    for labels, count in counted.items():
        sums[labels[1]] += count
    return dict(sums)
