"""Rows that differ from the source for now: which settle, and which have differed for too long. Pure decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.quality.reconcile import Kind
from dmdelta.quality.row_keys import RowKey


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A row that differs, perhaps only because the source is ahead.

    Attributes:
        since: when it was first seen to differ, with no newer change in the log since.
        position: where the source's log was then: before all up to there is in silver, a difference means nothing.
    """

    key: RowKey
    kind: Kind
    since: datetime
    position: Position


@dataclass(frozen=True, slots=True)
class ErrorThreshold:
    """What makes a pending row an error.

    Attributes:
        delay: how long it may differ.
        now: the present.
        reached: how far silver was looked at.
    """

    delay: timedelta
    now: datetime
    reached: Position

    def is_over(self, row: PendingRow) -> bool:
        return self.now - row.since >= self.delay and self.reached >= row.position


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """What another look at pending rows has made of them: those that agree are in neither."""

    pending: tuple[PendingRow, ...]
    errors: tuple[PendingRow, ...]


def newly_pending(
    keys: Iterable[RowKey], kinds: Mapping[str, Kind], now: datetime, position: Position
) -> dict[str, PendingRow]:
    """Of rows that the log has just changed, those that differ, by the key's text; their clocks restart.

    Args:
        kinds: how rows differ, by the key's text.
        position: where the source's log was when they were read, or later.
    """
    return {key.text: PendingRow(key, kinds[key.text], now, position) for key in keys if key.text in kinds}


def plan_recheck(rows: Sequence[PendingRow], kinds: Mapping[str, Kind], patience: ErrorThreshold) -> RecheckResult:
    """Decide what becomes of pending rows.

    Args:
        kinds: how those that still differ do, by the key's text.
    """
    differing = [replace(row, kind=kinds[row.key.text]) for row in rows if row.key.text in kinds]
    errors = tuple(row for row in differing if patience.is_over(row))
    return RecheckResult(tuple(row for row in differing if not patience.is_over(row)), errors)


class ErrorState(str, Enum):
    """The operator's decision about an error."""

    NEW = "new"
    IGNORED = "ignored"
    """The row may differ; it stays so when it is found to differ again."""
    RESOLVED = "resolved"
    """It was repaired; if it is found to differ again, it is new."""
