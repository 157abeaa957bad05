"""When rows that differ settle, and when that is an error."""

from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.model.position import Position
from dmdelta.quality.pending import ErrorThreshold, PendingRow, RecheckResult, newly_pending, plan_recheck
from dmdelta.quality.reconcile import Kind
from dmdelta.quality.row_keys import RowKey

NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
KEYS = [RowKey(text, (text,)) for text in "123"]


def at(offset, epoch=1):
    return Position(epoch, "binlog.000002", offset)


def row(key, since=NOON, position=100, kind=Kind.DIFFERENT):
    return PendingRow(KEYS[key - 1], kind, since, at(position))


def patience(minutes, reached):
    return ErrorThreshold(timedelta(minutes=30), NOON + timedelta(minutes=minutes), reached)


def test_of_changed_rows_those_that_differ_are_pending():
    """Their clocks begin now."""
    found = newly_pending(KEYS, {"2": Kind.MISSING}, NOON, at(100))
    assert found == {"2": row(2, kind=Kind.MISSING)}


def test_rows_that_agree_have_settled():
    """The others stay pending for as long as they may, as they differ now."""
    settling = plan_recheck([row(1), row(2)], {"2": Kind.EXTRA}, patience(29, at(500)))
    assert settling == RecheckResult((row(2, kind=Kind.EXTRA),), ())


@pytest.mark.parametrize(
    ("minutes", "reached", "is_error"),
    [
        (30, at(100), True),
        (29, at(500), False),
        (300, at(99), False),
        (30, at(4, epoch=2), True),
    ],
)
def test_a_row_is_an_error_after_the_delay_and_behind_the_source(minutes, reached, is_error):
    """However long silver is behind where the source was when the row was read, a difference means nothing."""
    settling = plan_recheck([row(1)], {"1": Kind.DIFFERENT}, patience(minutes, reached))
    assert (bool(settling.errors), bool(settling.pending)) == (is_error, not is_error)
