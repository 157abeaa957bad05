"""The points of one source in memory, and the rules by which they move.

- exit point: moves before a range is handed to the appliers; nothing beyond it can have been applied.
- table point: moves when a table's commit is in; everything of the table below it is applied.
- global point: moves when every table of the oldest handed ranges is through; everything below it is applied, so a
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
"""Before everything: where a task stands that has applied nothing."""


class FlushReason(str, Enum):
    """Why a checkpoint was written, and so what may have happened after it."""

    INTERVAL = "interval"
    """The task went on running."""
    DDL = "ddl"
    """A change of a table's structure was applied; the task went on running."""
    PAUSE = "pause"
    """The task ended on an error; what was in flight is below the exit point."""
    STOP = "stop"
    """The task ended in order; nothing was in flight."""

    RESET = "reset"
    """The task begins anew: what it was is forgotten."""

    @property
    def ends_the_run(self) -> bool:
        return self is FlushReason.PAUSE or self.is_orderly

    @property
    def is_orderly(self) -> bool:
        """The run left nothing in flight."""
        return self in (FlushReason.STOP, FlushReason.RESET)


@dataclass(frozen=True, slots=True)
class Point:
    """A position and, where the source has GTIDs, the set of all transactions below it."""

    position: Position
    gtid_set: str | None = None


@dataclass(frozen=True, slots=True)
class TablePoint:
    """How far one table is.

    Attributes:
        point: everything of the table below it is in silver.
        delta_version: the silver table's Delta version after its last commit of ours.
        table_info: the source table's structure there (`TableSchema.to_json`), where it is known.
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
        exit_point: None after an orderly stop that leaves nothing in doubt.
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
    """What the last flush of a source left."""

    flush_id: int
    reason: FlushReason
    global_point: Point
    tables: Mapping[TableName, TablePoint]
    exit_point: Point | None


@dataclass(slots=True)
class _HandedRange:
    """A range that was handed to the appliers, and the tables that are not through it yet."""

    end: Point
    pending: set[TableName]


class Points:
    """The points of one source. Every method may be called from any thread."""

    def __init__(self, source_id: str, stored: StoredPoints | None = None, exit_point: Position | None = None) -> None:
        """Take over what the last run left.

        Args:
            exit_point: up to where an earlier run may have applied (`inherited_exit`).
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
        """Have `act` called at the end of each `hand_over`: what it does is done before the appliers begin."""
        self._before_apply = act

    def hand_over(self, end: Point, tables: Collection[TableName]) -> None:
        """A range up to `end` goes to the appliers now; `tables` have events in it. Call it before they begin."""
        with self._lock:
            behind = {name for name in tables if not self._is_through(name, end)}
            self._handed.append(_HandedRange(end, behind))
            self._exit = max(self._exit, end, key=lambda point: point.position)
            self._advance_global()
        self._before_apply()

    def applied(self, table: TablePoint) -> None:
        """A table's commit is in, of this run or, as its history proves, of an earlier one: it is through below it."""
        with self._lock:
            here = table.point.position
            known = self._tables.get(table.name)
            if known is not None and known.point.position > here:
                return  # a replay of what the table has: the point never goes back
            self._tables[table.name] = table
            self._exit = self._farthest(self._exit)  # an earlier run may have been ahead of what this one handed over
            for handed in self._handed:
                if handed.end.position <= here:
                    handed.pending.discard(table.name)
            self._advance_global()

    @property
    def reached(self) -> Position:
        """The global point's position."""
        with self._lock:
            return self._global.position

    def pending(self) -> set[TableName]:
        """The tables that are not through a range that was handed over."""
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
        # All appliers have ended, so this run leaves nothing in doubt; a run before it may have.
        if self._inherited is None or self._inherited.position <= self._global.position:
            return None
        return self._farthest(self._inherited)

    def _farthest(self, first: Point | None) -> Point:
        """The farthest of a point, the global and all table points."""
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
        """Below the global point there is nothing left of any table."""
        behind = table.point.position < self._global.position
        return replace(table, point=self._global) if behind else table


def changed_tables(now: Snapshot, flushed: Iterable[TablePoint]) -> tuple[TablePoint, ...]:
    """The tables that a commit moved since a flush; those that the global point carried along need no new row."""
    before = {table.name: (table.delta_version, table.table_info) for table in flushed}
    return tuple(table for table in now.tables if before.get(table.name) != (table.delta_version, table.table_info))
