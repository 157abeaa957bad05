"""Facts about landing batches, from commits: duration, age of the newest change, safe mode."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TypeVar

from dmdelta.lakehouse.history import TimedCommit
from dmdelta.model.position import Position
from dmdelta.report.facts import Pace, SafeRange
from dmdelta.report.time_buckets import Stretches

_Each = TypeVar("_Each")
_Key = tuple[int, int]
"""`Position.key`: epoch and seq."""


@dataclass(frozen=True, slots=True)
class LandedRows:
    """The bronze rows of one landing: they share `landed_at`, the time at which it started.

    Attributes:
        last: epoch and seq of the last row.
        newest_change: when the newest change was committed at the source; None: none, or its age is meaningless.
    """

    source_id: str
    landed_at: datetime
    last: _Key
    newest_change: datetime | None


@dataclass(frozen=True, slots=True)
class Batch:
    """One landing commit and its way to silver.

    Attributes:
        landed: when it was committed to bronze.
        began: when its landing started; None if it had no rows.
        applied: when the last silver table was committed; None: no silver table had changes of it, or not yet.
    """

    source_id: str
    begin: Position
    end: Position
    landed: datetime
    began: datetime | None = None
    newest_change: datetime | None = None
    applied: datetime | None = None

    @property
    def land_seconds(self) -> float | None:
        return _seconds(self.began, self.landed)

    @property
    def apply_seconds(self) -> float | None:
        return _seconds(self.landed, self.applied)

    @property
    def bronze_lag(self) -> float | None:
        return _seconds(self.newest_change, self.landed)

    @property
    def silver_lag(self) -> float | None:
        return _seconds(self.newest_change, self.applied)


def batches_of(
    landings: Iterable[TimedCommit], rows: Iterable[LandedRows], applied: Iterable[TimedCommit]
) -> list[Batch]:
    """The batches of all sources, each source's in log order.

    Args:
        landings: landing commits of bronze.
        applied: commits of silver tables.
    """
    rows_of = _grouped(rows, lambda each: each.source_id)
    applied_of = _grouped(applied, lambda each: each.tag.source)
    batches: list[Batch] = []
    for source_id, commits in _grouped(landings, lambda each: each.tag.source).items():
        of_source = sorted(
            (Batch(source_id, each.tag.begin, each.tag.end, each.at) for each in commits), key=lambda each: each.end.key
        )
        with_rows = _with_rows(of_source, rows_of.get(source_id, []))
        batches += _with_ends(with_rows, applied_of.get(source_id, []))
    return batches


def paces_of(batches: Iterable[Batch], stretches: Stretches) -> tuple[Pace, ...]:
    """The batches by time bucket: the worst of each bucket."""
    ordered = sorted(batches, key=lambda each: each.landed)
    return tuple(
        _pace(at, list(among)) for at, among in groupby(ordered, key=lambda each: stretches.begin_of(each.landed))
    )


def safe_ranges_of(commits: Iterable[TimedCommit]) -> tuple[SafeRange, ...]:
    """The ranges of the log in safe mode that commits name (`safe_until`), newest first."""
    ordered = sorted(commits, key=lambda each: each.at)
    reached: dict[str, Position] = {}
    for each in ordered:
        reached[each.tag.source] = max(each.tag.end, reached.get(each.tag.source, each.tag.end))
    named: dict[tuple[str, Position], list[TimedCommit]] = {}
    for each in ordered:
        if each.tag.safe_until is not None:
            named.setdefault((each.tag.source, each.tag.safe_until), []).append(each)
    ranges = [
        SafeRange(
            source_id=source_id,
            begin=str(min(each.tag.begin for each in among)),
            end=str(until),
            first=among[0].at,
            last=among[-1].at,
            over=reached[source_id] >= until,
        )
        for (source_id, until), among in named.items()
    ]
    return tuple(sorted(ranges, key=lambda each: each.last, reverse=True))


def _with_rows(batches: Sequence[Batch], rows: Iterable[LandedRows]) -> list[Batch]:
    """The batches with the times of their rows; `batches` in log order."""
    ends = [each.end.key for each in batches]
    known = list(batches)
    for each in rows:
        place = bisect_right(ends, each.last)  # a range's end is exclusive
        if place < len(known) and known[place].begin.key <= each.last:
            known[place] = replace(known[place], began=each.landed_at, newest_change=each.newest_change)
    return known


def _with_ends(batches: Sequence[Batch], applied: Iterable[TimedCommit]) -> list[Batch]:
    """The batches with the time of their last silver commit: silver applies one batch or several as one range."""
    ranges: dict[_Key, tuple[_Key, datetime]] = {}
    for each in applied:
        begin, at = ranges.get(each.tag.end.key, (each.tag.begin.key, each.at))
        ranges[each.tag.end.key] = (min(begin, each.tag.begin.key), max(at, each.at))
    ends = sorted(ranges)
    return [replace(batch, applied=_applied_at(batch, ranges, ends)) for batch in batches]


def _applied_at(batch: Batch, ranges: Mapping[_Key, tuple[_Key, datetime]], ends: Sequence[_Key]) -> datetime | None:
    """When the range that contains a batch was applied; `ends` are the sorted keys of `ranges`."""
    place = bisect_left(ends, batch.end.key)
    if place == len(ends):
        return None
    begin, at = ranges[ends[place]]
    # A table that the batch itself creates starts after the start of the batch.
    return at if ends[place] == batch.end.key or begin <= batch.begin.key else None


def _pace(at: datetime, batches: Sequence[Batch]) -> Pace:
    slowest = max(batches, key=lambda each: (each.land_seconds or 0.0) + (each.apply_seconds or 0.0))
    return Pace(
        at=at,
        batches=len(batches),
        land_seconds=slowest.land_seconds,
        apply_seconds=slowest.apply_seconds,
        bronze_lag=max((each.bronze_lag for each in batches if each.bronze_lag is not None), default=None),
        silver_lag=max((each.silver_lag for each in batches if each.silver_lag is not None), default=None),
    )


def _grouped(each_of_all: Iterable[_Each], source_of: Callable[[_Each], str]) -> dict[str, list[_Each]]:
    groups: dict[str, list[_Each]] = {}
    for each in each_of_all:
        groups.setdefault(source_of(each), []).append(each)
    return groups


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    """At least 0: the two times may come from the clocks of two machines."""
    return max(0.0, (end - begin).total_seconds()) if begin is not None and end is not None else None
