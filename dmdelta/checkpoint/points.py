"""The points of one source in memory, and the rules by which they move.

- exit point: moves before a range is handed to the appliers; nothing beyond it can have been applied.
- table point: moves after a table's commit; everything of the table below it is applied.
- global point: moves once every table has completed the oldest handed-over ranges; everything below it is applied, so a
  table without events is never behind it.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName

ORIGIN = Position(0, "origin.000000", 0)
"""Before all positions: the point of a task that has applied nothing."""


class FlushReason(str, Enum):
    """Why a checkpoint was written, and so what may have happened after it."""

    INTERVAL = "interval"
    """The task continued to run."""
    DDL = "ddl"
    """A change of a table's structure was applied; the task continued to run."""
    PAUSE = "pause"
    """The task ended with an error; in-flight changes are below the exit point."""
    STOP = "stop"
    """The task ended in an orderly way; nothing was in flight."""

    RESET = "reset"
    """The task starts over: its previous progress is discarded."""

    @property
    def ends_the_run(self) -> bool:
        return self is FlushReason.PAUSE or self.is_orderly

    @property
    def is_orderly(self) -> bool:
        """Whether the run left nothing in flight."""
        return self in (FlushReason.STOP, FlushReason.RESET)


@dataclass(frozen=True, slots=True)
class Point:
    """A position and, where the source has GTIDs, the set of all transactions below it."""

    position: Position
    gtid_set: str | None = None


@dataclass(frozen=True, slots=True)
class TablePoint:
    """The progress of one table.

    Attributes:
        point: everything of the table below it is in silver.
        delta_version: the silver table's Delta version after this task's last commit.
        table_info: the source table's structure at that point (`TableSchema.to_json`), if known.
    """

    schema: str
    table: str
    point: Point
    delta_version: int | None = None
    table_info: str | None = None

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All points of a source at one moment: global <= every table <= exit point.

    Attributes:
        exit_point: None after an orderly stop without uncertain changes.
    """

    source_id: str
    global_point: Point
    tables: tuple[TablePoint, ...]
    exit_point: Point | None

    def __post_init__(self) -> None:
        bottom = self.global_point.position
        top = self.exit_point.position if self.exit_point else None
        assert top is None or bottom <= top, f"global point {bottom} beyond the exit point {top}"
        for table in self.tables:
            here = table.point.position
            assert bottom <= here, f"{table.schema}.{table.table} at {here}, behind the global point {bottom}"
            assert top is None or here <= top, f"{table.schema}.{table.table} at {here}, beyond the exit point {top}"


@dataclass(frozen=True, slots=True)
class StoredPoints:
    """The points that the last flush of a source wrote."""

    flush_id: int
    reason: FlushReason
    global_point: Point
    tables: Mapping[TableName, TablePoint]
    exit_point: Point | None


MOST_RANGES = 64
"""A table that has stopped would otherwise leave a range for each batch that lands meanwhile, of the other tables."""


@dataclass(slots=True)
class _HandedRange:
    """A range that was handed to the appliers.

    Attributes:
        end: the global point when it is completed.
        pending: the tables that have not completed it, with the position that each must reach.
    """

    end: Point
    pending: dict[TableName, Position]

    def extend(self, end: Point, behind: Iterable[TableName]) -> None:
        """Make the next range a part of this one: both are completed together."""
        self.end = end
        self.pending |= dict.fromkeys(behind, end.position)


class Points:
    """The points of one source. Thread-safe."""

    def __init__(self, source_id: str, stored: StoredPoints | None = None, exit_point: Position | None = None) -> None:
        """Start from the points of the last run.

        Args:
            exit_point: the position up to which an earlier run may have applied changes (`inherited_exit`).
        """
        self.source_id = source_id
        self._lock = threading.Lock()
        self._global = stored.global_point if stored else Point(ORIGIN)
        self._tables: dict[TableName, TablePoint] = dict(stored.tables) if stored else {}
        self._handed: deque[_HandedRange] = deque()
        self._inherited = Point(exit_point) if exit_point else None
        self._exit = self._farthest(self._inherited)
        self._before_apply: Callable[[], None] = lambda: None

    def before_apply(self, act: Callable[[], None]) -> None:
        """Register `act` to be called at the end of each `hand_over`, before the appliers start."""
        self._before_apply = act

    def hand_over(self, end: Point, tables: Collection[TableName]) -> None:
        """Record that a range up to `end` goes to the appliers; `tables` have events in it. Call before they start."""
        with self._lock:
            behind = [name for name in tables if not self._is_through(name, end)]
            if len(self._handed) < MOST_RANGES:
                self._handed.append(_HandedRange(end, {}))
            self._handed[-1].extend(end, behind)
            self._exit = max(self._exit, end, key=lambda point: point.position)
            self._advance_global()
        self._before_apply()

    def applied(self, table: TablePoint) -> None:
        """Record a table's commit, of this run or, as its history proves, of an earlier one."""
        with self._lock:
            here = table.point.position
            known = self._tables.get(table.name)
            if known is not None and known.point.position > here:
                return  # a replay of changes that the table has: the point never moves back
            if known is not None and table.delta_version in (None, known.delta_version):  # silver is as it was
                info = table.table_info or known.table_info
                table = replace(table, delta_version=known.delta_version, table_info=info)
            self._tables[table.name] = table
            # An earlier run may have been ahead of this run's handed-over ranges.
            self._exit = self._farthest(self._exit)
            for handed in self._handed:
                needed = handed.pending.get(table.name)
                if needed is not None and needed <= here:
                    del handed.pending[table.name]
            self._advance_global()

    @property
    def reached(self) -> Position:
        """The global point's position."""
        with self._lock:
            return self._global.position

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables that have a point."""
        with self._lock:
            return frozenset(self._tables)

    def pending(self) -> set[TableName]:
        """The tables that have not completed a handed-over range."""
        with self._lock:
            return {name for handed in self._handed for name in handed.pending}

    def snapshot(self, reason: FlushReason) -> Snapshot:
        """The points as they are to be written for `reason`."""
        with self._lock:
            tables = tuple(self._lifted(table) for table in self._tables.values())
            return Snapshot(self.source_id, self._global, tables, self._exit_point(reason))

    def _exit_point(self, reason: FlushReason) -> Point | None:
        if not reason.is_orderly:
            return self._exit
        # All appliers have ended, so this run leaves no uncertain changes; an earlier run may have.
        if self._inherited is None or self._inherited.position <= self._global.position:
            return None
        return self._farthest(self._inherited)

    def _farthest(self, first: Point | None) -> Point:
        """The farthest of a point, the global point and all table points."""
        points = [self._global, *(table.point for table in self._tables.values())]
        return max([*points, first] if first else points, key=lambda point: point.position)

    def _advance_global(self) -> None:
        while self._handed and not self._handed[0].pending:
            end = self._handed.popleft().end
            self._global = max(self._global, end, key=lambda point: point.position)

    def _is_through(self, name: TableName, end: Point) -> bool:
        table = self._tables.get(name)
        return table is not None and table.point.position >= end.position

    def _lifted(self, table: TablePoint) -> TablePoint:
        """The table's point, raised to the global point: below that, no table has anything left to apply."""
        behind = table.point.position < self._global.position
        return replace(table, point=self._global) if behind else table


def changed_tables(now: Snapshot, flushed: Iterable[TablePoint]) -> tuple[TablePoint, ...]:
    """The tables that a commit moved since a flush; those that only the global point moved need no new row."""
    before = {table.name: (table.delta_version, table.table_info) for table in flushed}
    return tuple(table for table in now.tables if before.get(table.name) != (table.delta_version, table.table_info))
