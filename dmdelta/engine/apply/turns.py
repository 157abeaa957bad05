"""Plans the turns of tables: what a turn covers, and which table has the next one. Pure: values in, plan out."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.ingest.queue import can_join
from dmdelta.engine.telemetry.counters import smoothed
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.schema.range_profile import TableEvents


@dataclass(frozen=True, slots=True)
class PendingRange:
    """A range that a table has not applied yet.

    Attributes:
        events: the table's events in the range; None: not known yet, its turn looks them up.
        group: the tables that a statement of the range renames into each other; empty: none with this table.
        since: when the range was handed over (monotonic seconds).
    """

    landed: LandedRange
    events: TableEvents | None
    since: float
    group: frozenset[TableName] = frozenset()

    @property
    def rows(self) -> int:
        """The known number of waiting row changes."""
        return self.events.row_count if self.events is not None else 0


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """A turn that could start now.

    Attributes:
        names: its tables; more than one if they are renamed into each other.
        merged: the merged tables that it writes. One turn at a time writes a merged table.
        rows: the number of waiting row changes.
        age: how long its oldest range has waited, in seconds.
        cost: the recent duration of its turns, in seconds.
    """

    names: tuple[TableName, ...]
    merged: frozenset[TableName]
    rows: int
    age: float
    cost: float

    @property
    def urgency(self) -> float:
        """The rank of the turn: the highest is the next.

        The age counts squared, and the rows by their magnitude. So the interval between two turns of a table grows only
        with the square root of their cost: tables that are written at different cost, or have few rows, wait a bounded
        multiple of the others' time. With the plain product of rows and age, one row would wait behind a table with
        thousands of rows per second for hours.
        """
        return (1 + math.log10(1 + self.rows)) * self.age**2 / max(self.cost, MIN_COST)


MIN_COST = 0.1
"""Seconds. A turn takes at least this long, which the average of a few empty turns may not show."""


def plan_cost(before: float | None, took: float) -> float:
    """The cost of a table's turns after one that took so many seconds; `before`: the cost so far, None for the first.

    It falls at once and rises slowly: a turn that takes longer also pays for a cold JVM, or for what runs beside it. As
    a plain average, the first tables of a run would wait longer than the others for many turns.
    """
    return took if before is None or took < before else smoothed(before, took)


def plan_next_turn(waiting: Collection[WaitingTurn], merged_in_use: Collection[TableName]) -> WaitingTurn | None:
    """The turn to start next; None if none can start.

    Args:
        merged_in_use: the merged tables that are being written. Another shard would only wait for its right to write.
    """
    ready = [turn for turn in waiting if turn.merged.isdisjoint(merged_in_use)]
    return min(ready, key=lambda turn: (-turn.urgency, turn.names), default=None)


def plan_joined(pending: Iterable[PendingRange], max_bytes: int) -> int:
    """How many of a table's pending ranges (in log order; at least one) its next turn covers.

    A range with a rename is applied alone, by all its tables together. The others are joined up to `max_bytes` of log,
    and never across an epoch: a snapshot's rows are new, the log after it may already be in silver.
    """
    first, *later = pending
    joined, count = first.landed, 1
    for following in later:
        if first.group or following.group or not can_join(joined, following.landed, max_bytes):
            break
        joined, count = joined.join(following.landed), count + 1
    return count


def plan_missed(handed: Sequence[LandedRange], begin: Position) -> list[LandedRange]:
    """What a table misses from `begin` on: one range for each epoch, at least one, which is empty if it misses nothing.

    A range across an epoch would contain rows of a snapshot and the log that overlaps it, which follow different rules.

    Args:
        handed: what was handed over, as one range for each epoch, in log order; at least one.
    """
    first, *later = [landed for landed in handed if landed.end > begin] or [replace(handed[-1], end=begin)]
    # What the table may already have of the first one follows from its own commits.
    return [replace(first, begin=begin, safe_until=None), *later]


def join_pending(parts: Sequence[PendingRange]) -> PendingRange:
    """One pending range of several, in log order; its events are unknown if those of any part are."""
    joined = parts[0]
    for part in parts[1:]:
        known = None if joined.events is None or part.events is None else join_events(joined.events, part.events)
        joined = replace(joined, landed=joined.landed.join(part.landed), events=known)
    return joined


def join_events(first: TableEvents, then: TableEvents) -> TableEvents:
    """The events of one table in two ranges, of which `then` is the later one."""
    ops = {**first.rows, **then.rows}
    return TableEvents(
        schema=first.schema,
        table=first.table,
        rows={op: first.rows.get(op, 0) + then.rows.get(op, 0) for op in ops},
        first=min(first.first, then.first),
        last=max(first.last, then.last),
        structure=(*first.structure, *then.structure),
        partial=first.partial + then.partial,
        moves=first.moves + then.moves,
        groups=tuple(dict.fromkeys((*first.groups, *then.groups))),
        read=first.read or then.read,
    )
