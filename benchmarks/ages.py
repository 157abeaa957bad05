"""The age of changes when they reach silver, by time and by table. Pure: records in, figures out."""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from dmdelta.model.position import Position

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Event:
    """Row changes of one table that one event of the log has.

    Attributes:
        at: the source's commit time, in UTC.
        key: epoch and seq.
        rows: number of row changes.
    """

    table: str
    key: tuple[int, int]
    at: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class Aged:
    """Row changes, and their age in seconds when they became visible.

    Attributes:
        at: the source's commit time, in UTC.
        applied: False if they were not in silver at the end; their age is then their age at the end: a lower bound.
    """

    table: str
    at: datetime
    age: float
    rows: int
    applied: bool = True


def ages_of(
    events: Iterable[Event], reached: Mapping[str, Sequence[tuple[Position, datetime]]], end: datetime
) -> list[Aged]:
    """The age of changes when they were in silver.

    Args:
        reached: the positions that each table reached, ascending, and when.
        end: when the measurement ended, in UTC.
    """
    found = []
    for event in events:
        positions = reached.get(event.table, ())
        first = bisect.bisect_right(positions, event.key, key=lambda one: one[0].key)
        applied = first < len(positions)
        at = positions[first][1] if applied else end
        found.append(Aged(event.table, event.at, (at - event.at).total_seconds(), event.rows, applied))
    return found


def quantile(aged: Iterable[Aged], share: float) -> float:
    """The smallest age that at least this share of the changes does not exceed; NaN without changes."""
    ordered = sorted(aged, key=lambda one: one.age)
    wanted, seen = share * sum(one.rows for one in ordered), 0
    for one in ordered:
        seen += one.rows
        if seen >= wanted:
            return one.age
    return math.nan


def between(aged: Iterable[Aged], begin: datetime, end: datetime) -> list[Aged]:
    """The changes that were committed at the source from `begin` on and before `end`."""
    return [one for one in aged if begin <= one.at < end]


@dataclass(frozen=True, slots=True)
class Freshness:
    """Changes: their number, how many of them were not in silver at the end, and their ages in seconds."""

    rows: int
    missing: int
    p50: float
    p95: float
    oldest: float


def freshness_of(aged: Sequence[Aged]) -> Freshness:
    """The figures of changes; ages are NaN without changes."""
    return Freshness(
        rows=sum(one.rows for one in aged),
        missing=sum(one.rows for one in aged if not one.applied),
        p50=quantile(aged, 0.5),
        p95=quantile(aged, 0.95),
        oldest=max((one.age for one in aged), default=math.nan),
    )


def by_minute(aged: Sequence[Aged], begin: datetime, end: datetime) -> list[Freshness]:
    """The figures of each minute of commits at the source; the last one may be shorter, or a second longer."""
    minutes = max(1, math.ceil((end - begin - timedelta(seconds=1)) / MINUTE))
    ends = [*(begin + number * MINUTE for number in range(1, minutes)), end]
    return [freshness_of(between(aged, since, until)) for since, until in pairwise([begin, *ends])]


@dataclass(frozen=True, slots=True)
class Spread:
    """The p95 (seconds) of the worst table and of the median table, and the worst table's name."""

    worst: str
    worst_p95: float
    median_p95: float

    @property
    def ratio(self) -> float:
        """How many times the median table's p95 the worst one's is."""
        return self.worst_p95 / self.median_p95


def spread_of(aged: Iterable[Aged]) -> Spread:
    """How much the tables differ.

    Raises:
        ValueError: there are no changes.
    """
    tables: dict[str, list[Aged]] = defaultdict(list)
    for one in aged:
        tables[one.table].append(one)
    if not tables:
        raise ValueError("no changes in the evaluated time")
    p95 = {table: quantile(some, 0.95) for table, some in tables.items()}
    worst = max(p95, key=lambda table: p95[table])
    return Spread(worst, p95[worst], median(p95.values()))
