"""Which ranges all tables have applied, in log order."""

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from dmdelta.bronze.progress import LandedRange
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName


@dataclass(frozen=True, slots=True)
class AppliedRange:
    """A range that every table has applied, except tables that were held meanwhile.

    Attributes:
        tables: the number of tables with events in it.
        ddl: it contains a statement.
        seconds: the time since it was handed over.
    """

    landed: LandedRange
    tables: int
    ddl: bool
    seconds: float


@dataclass(slots=True)
class _OpenRange:
    """A range that tables still have to apply."""

    landed: LandedRange
    remaining: set[TableName]
    tables: int
    ddl: bool
    since: float


@dataclass(slots=True)
class OpenRanges:
    """The ranges that were handed over and are not applied by all tables yet. Not thread-safe."""

    _open: deque[_OpenRange] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def size(self) -> int:
        """Approximate bytes of log."""
        return sum(each.landed.size for each in self._open)

    def add(self, landed: LandedRange, remaining: Collection[TableName], *, tables: int, ddl: bool) -> None:
        """Add a range.

        Args:
            remaining: the tables that have to apply it.
            tables: the number of tables with events in it, held ones included.
        """
        self._open.append(_OpenRange(landed, set(remaining), tables, ddl, time.monotonic()))

    def applied(self, name: TableName, end: Position) -> None:
        """Record that a table has applied everything before `end`."""
        for each in self._open:
            if each.landed.end <= end:
                each.remaining.discard(name)

    def leave_out(self, name: TableName) -> None:
        """Wait for a table no longer, because it is held."""
        for each in self._open:
            each.remaining.discard(name)

    def take(self) -> list[AppliedRange]:
        """Remove the oldest ranges that all tables have applied."""
        applied = list[AppliedRange]()
        while self._open and not self._open[0].remaining:
            done = self._open.popleft()
            applied.append(AppliedRange(done.landed, done.tables, done.ddl, time.monotonic() - done.since))
        return applied
