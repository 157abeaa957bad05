"""What a run tells while it goes on, and at its end."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dmdelta.silver.apply import ApplyResult


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a run.

    Attributes:
        landed_batches, landed_to: of this run; where bronze ends, by source.
        applied_rows: row changes applied in this run, before compaction.
        tables: row changes by silver table (`schema.table`).
    """

    seconds: float
    landed_batches: int
    landed_to: dict[str, str]
    applied_rows: int
    tables: dict[str, int]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended; `stopped` if it was asked to, else it had caught up."""

    progress: Progress
    stopped: bool

    @property
    def is_idle(self) -> bool:
        """Nothing was new."""
        return not self.progress.landed_batches and not self.progress.applied_rows


@dataclass(slots=True)
class Tally:
    """Counts what the loops report, from any thread, and passes the sum on."""

    listener: Callable[[Progress], None]
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _batches: int = 0
    _landed_to: dict[str, str] = field(default_factory=dict)
    _tables: dict[str, int] = field(default_factory=dict)

    def landed(self, source_id: str, end: str) -> None:
        with self._lock:
            self._batches += 1
            self._landed_to[source_id] = end
        self.listener(self.now())

    def applied(self, result: ApplyResult) -> None:
        with self._lock:
            name = f"{result.schema}.{result.table}"
            self._tables[name] = self._tables.get(name, 0) + result.row_count
        self.listener(self.now())

    def now(self) -> Progress:
        with self._lock:
            seconds = time.monotonic() - self._began
            tables = dict(self._tables)
            return Progress(seconds, self._batches, dict(self._landed_to), sum(tables.values()), tables)
