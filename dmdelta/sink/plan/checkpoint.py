"""The sink's checkpoint, as DM has it: global point ≤ table points ≤ safe mode's exit point.

The point of a shard that waits for others is where its statement is. It lies before the global point: unlike DM, the
sink does not read the log of the other tables again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName

STOP, ERROR = "stop", "error"
ENDS = (STOP, ERROR)
"""Reasons of a run's last checkpoint: nothing after its exit point was handed to a worker."""


@dataclass(frozen=True, slots=True)
class PushedPoint:
    """What a snapshot mark certifies once all workers have reached it.

    Attributes:
        position: the end of the newest source transaction before it, the global point; None: in the first one.
        tables: everything before it was executed, of every table; later than `position` within a transaction.
    """

    position: Position | None
    tables: Position

    def __str__(self) -> str:
        return str(self.position)


@dataclass(frozen=True, slots=True)
class AboutTo:
    """A statement that was about to be executed.

    Attributes:
        part: the index of its part; those before it were executed.
        fingerprint: of all its parts, None in the checkpoint of an earlier release.
    """

    position: Position
    part: int
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """
    Attributes:
        position: the global point: everything before it was executed. After it nothing was, except what the records
            list and what lies before a table's point.
        exit_point: everything after it was not executed; of an interval's checkpoint: when it was written.
        tables: of each source table, everything before its point was executed; of a held shard, nothing after it.
        gtid_set: transactions before the global point; all of them if a landed batch ends there.
        exit_gtid_set: the same for the exit point.
        about_to: the statement that was about to be executed; None: none.
        reason: why the checkpoint was written.
    """

    position: Position
    exit_point: Position | None = None
    tables: Mapping[TableName, Position] = field(default_factory=dict)
    gtid_set: str | None = None
    exit_gtid_set: str | None = None
    about_to: AboutTo | None = None
    reason: str = "interval"

    @property
    def ended(self) -> bool:
        """It is the last one of its run, so its exit point is final."""
        return self.reason in ENDS and self.exit_point is not None

    def held(self) -> dict[TableName, Position]:
        """The shards that wait for others, with the position of their statement."""
        return {name: point for name, point in self.tables.items() if point < self.position}

    def ahead(self) -> dict[TableName, Position]:
        """The table points that are later than the global point."""
        return {name: point for name, point in self.tables.items() if point > self.position}


def plan_checkpoint(
    point: PushedPoint,
    exit_point: Position | None,
    tables: Mapping[TableName, Position],
    reason: str,
    *,
    held: Mapping[TableName, Position] | None = None,
) -> Checkpoint | None:
    """The checkpoint at a point; None before the end of the first source transaction.

    Args:
        exit_point: how far changes were handed to the workers, or how far an unknown run may have executed them.
        tables: the table points that are certain without `point`; tables with changes only.
        held: the shards that wait for others.

    Raises:
        AssertionError: of a table that is not held, not global point ≤ table points ≤ exit point.
    """
    if point.position is None:
        return None
    position = point.position
    exit_point = max(position, exit_point) if exit_point is not None else position
    every = {name: max(position, point.tables, at) for name, at in tables.items()}
    assert all(position <= at <= exit_point for at in every.values()), "global point ≤ table points ≤ exit point"
    return Checkpoint(position, exit_point, {**every, **(held or {})}, reason=reason)


def plan_ended(
    ready: PushedPoint, handed: Position | None, tables: Iterable[TableName], unexecuted: Iterable[TableName] | None
) -> dict[TableName, Position]:
    """The table points of a run that ends before its workers have executed everything.

    Args:
        ready: the newest point that all workers have reached.
        handed: where the last slice ends that was handed over completely.
        unexecuted: tables with changes that no worker has executed; None: a worker is still running, so unknown.
    """
    if handed is None or unexecuted is None:
        return dict.fromkeys(tables, ready.tables)
    missing = set(unexecuted)
    return {name: ready.tables if name in missing else max(ready.tables, handed) for name in tables}
