"""Decides which differing rows stay pending, and which become errors. Pure decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.quality.reconcile import Kind
from dmdelta.quality.row_keys import RowKey


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A row that differs, possibly only because the source is ahead.

    Attributes:
        since: when it was first found to differ, without a newer change in the log since.
        position: the position of the source's log then; a difference counts only after silver has reached it.
    """

    key: RowKey
    kind: Kind
    since: datetime
    position: Position


@dataclass(frozen=True, slots=True)
class ErrorThreshold:
    """The threshold at which a pending row becomes an error.

    Attributes:
        delay: how long a row may differ.
        now: the current time.
        reached: the position up to which silver was compared.
    """

    delay: timedelta
    now: datetime
    reached: Position

    def is_over(self, row: PendingRow) -> bool:
        return self.now - row.since >= self.delay and self.reached >= row.position


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """The pending rows after a recheck; rows that are equal now are in neither list."""

    pending: tuple[PendingRow, ...]
    errors: tuple[PendingRow, ...]


def newly_pending(
    keys: Iterable[RowKey], kinds: Mapping[str, Kind], now: datetime, position: Position
) -> dict[str, PendingRow]:
    """The pending rows among rows that the log has changed, by the key's text; their delay starts now.

    Args:
        kinds: how rows differ, by the key's text.
        position: a position of the source's log at or after the time when the rows were read.
    """
    return {key.text: PendingRow(key, kinds[key.text], now, position) for key in keys if key.text in kinds}


def plan_recheck(rows: Sequence[PendingRow], kinds: Mapping[str, Kind], threshold: ErrorThreshold) -> RecheckResult:
    """Decide which rows stay pending, and which become errors.

    Args:
        kinds: how the rows that still differ do, by the key's text.
    """
    differing = [replace(row, kind=kinds[row.key.text]) for row in rows if row.key.text in kinds]
    errors = tuple(row for row in differing if threshold.is_over(row))
    return RecheckResult(tuple(row for row in differing if not threshold.is_over(row)), errors)


class ErrorState(str, Enum):
    """The state of an error, as decided by operators."""

    NEW = "new"
    IGNORED = "ignored"
    """The row may differ; the error stays ignored if the row differs again."""
    RESOLVED = "resolved"
    """The row was repaired; if it differs again, the error is new."""
