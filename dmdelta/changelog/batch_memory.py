"""The newest landed rows of a source in memory, so that silver need not read them from bronze.

A cache, never an authority: rows enter it after bronze's commit, and whatever it lacks is read from bronze.
"""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName

log = get_logger(__name__)
MEMORY_BYTES = 128 << 20
"""The capacity of a source's memory in a run."""
RowsOf = tuple[str | None, str | None]
"""Schema and table of rows; statements on a database have no table, ends of XA transactions have neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The rows of one landed batch.

    Attributes:
        begin: the end of the batch before it, from which no rows are missing.
        rows: sorted by table, in log order within each.
        places: the rows of each table, as [first, last).
        shared: those of the rows that belong to no table.
        seqs: the `seq` of each row.
        size: bytes.
    """

    begin: Position
    end: Position
    rows: Any
    places: Mapping[RowsOf, tuple[int, int]]
    shared: Sequence[tuple[int, int]]
    seqs: npt.NDArray[np.int64]
    size: int

    def slices(self, begin: Position, end: Position, table: TableName | None) -> list[Any]:
        """Slices of the rows in [begin, end), without copying: of one table and of no table, or of all."""
        if table is None and begin <= self.begin and self.end <= end:
            return [self.rows]
        own = self.places.get(table) if table is not None else None
        places = self.places.values() if table is None else (*((own,) if own else ()), *self.shared)
        found = []
        for first, last in places:
            seqs = self.seqs[first:last]
            low = first + int(np.searchsorted(seqs, begin.seq)) if begin > self.begin else first
            high = first + int(np.searchsorted(seqs, end.seq)) if end < self.end else last
            if low < high:
                found.append(self.rows.slice(low, high - low))
        return found


class BatchMemory:
    """The newest landed batches of one source. Thread-safe; the oldest are evicted when it is full."""

    def __init__(self, capacity: int = 0) -> None:
        """`capacity`: maximum bytes; 0: it keeps nothing."""
        self._capacity = capacity
        self._parts: deque[_Part] = deque()
        self._lock = threading.Lock()

    def __reduce__(self) -> "tuple[type[BatchMemory], tuple[()]]":
        """A copy for another process is empty and keeps nothing: rows are read from bronze there."""
        return BatchMemory, ()

    @property
    def is_used(self) -> bool:
        """Whether it keeps anything."""
        return self._capacity > 0

    @property
    def size(self) -> int:
        """Bytes of the rows in memory."""
        with self._lock:
            return sum(part.size for part in self._parts)

    def add(self, begin: Position, end: Position, rows: Any) -> None:
        """Keep the rows of a landed batch.

        Args:
            begin: the end of the batch before it: between that and the first row, the log has no rows.
            end: of the same epoch.
            rows: an Arrow table of all rows in [begin, end), in bronze's columns and in log order.
        """
        if not self._capacity:
            return
        part = _part(begin, end, rows)
        evicted = []
        with self._lock:
            self._parts.append(part)
            while sum(each.size for each in self._parts) > self._capacity:
                evicted.append(self._parts.popleft())
        for each in evicted:
            log.info("batch evicted from memory: silver reads it from bronze", end=str(each.end), size=each.size)
            reach(CrashPoint.MEMORY_EVICTED)

    def rows(self, begin: Position, end: Position, table: TableName | None = None) -> Any | None:
        """The rows in [begin, end), or None if the memory does not contain all of it.

        Args:
            table: only its rows, and the rows that belong to no table: statements on databases, ends of XA
                transactions. None: those of all tables.

        Returns:
            An Arrow table in bronze's columns, which shares the memory's data: in log order for each table.
        """
        parts = self._covering(begin, end)
        if parts is None:
            return None
        slices = [found for part in parts for found in part.slices(begin, end, table)]
        return pa.concat_tables(slices) if slices else parts[0].rows.slice(0, 0)

    def covers(self, begin: Position, end: Position) -> bool:
        """Whether the memory contains all rows in [begin, end)."""
        return self._covering(begin, end) is not None

    def release(self, until: Position) -> None:
        """Discard the batches that end at `until` or before: every table has applied them."""
        with self._lock:
            while self._parts and self._parts[0].end <= until:
                self._parts.popleft()

    def _covering(self, begin: Position, end: Position) -> "list[_Part] | None":
        """The parts that contain [begin, end) without a gap; None if there is one."""
        with self._lock:
            parts = [part for part in self._parts if begin < part.end and part.begin < end]
        if not parts or begin < parts[0].begin or parts[-1].end < end:
            return None
        if any(one.end != following.begin for one, following in pairwise(parts)):
            return None
        return parts


def _part(begin: Position, end: Position, rows: Any) -> _Part:
    schemas, schema_codes = _codes(rows["schema_name"])
    tables, table_codes = _codes(rows["table_name"])
    codes = schema_codes * len(tables) + table_codes
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    lasts = [*firsts[1:].tolist(), len(ordered)][: len(firsts)]
    places = {
        (schemas[code // len(tables)], tables[code % len(tables)]): (first, last)
        for code, first, last in zip(ordered[firsts].tolist(), firsts.tolist(), lasts, strict=True)
    }
    moved = rows.take(pa.array(order)).combine_chunks()
    seqs = moved["seq"].to_numpy() if len(order) else np.zeros(0, np.int64)
    shared = [place for name, place in places.items() if name[1] is None]
    return _Part(begin=begin, end=end, rows=moved, places=places, shared=shared, seqs=seqs, size=moved.nbytes)


def _codes(column: Any) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The distinct values of a column of texts, and the index of each row's value."""
    distinct = pc.unique(column)
    codes = pc.index_in(column, value_set=distinct, skip_nulls=False)
    return distinct.to_pylist(), codes.to_numpy().astype(np.int64)
