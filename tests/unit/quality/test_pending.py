"""When differing rows stay pending, and when they become errors."""

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


def threshold(minutes, reached):
    return ErrorThreshold(timedelta(minutes=30), NOON + timedelta(minutes=minutes), reached)


def test_changed_rows_that_differ_are_pending():
    """Their delay starts now."""
    found = newly_pending(KEYS, {"2": Kind.MISSING}, NOON, at(100))
    assert found == {"2": row(2, kind=Kind.MISSING)}


def test_equal_rows_are_no_longer_pending():
    """The others stay pending within the delay, with their current kind of difference."""
    settling = plan_recheck([row(1), row(2)], {"2": Kind.EXTRA}, threshold(29, at(500)))
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
def test_a_row_is_an_error_after_the_delay_and_the_source_position(minutes, reached, is_error):
    """Before silver reaches the position of the source at the time of the read, a difference does not count."""
    settling = plan_recheck([row(1)], {"1": Kind.DIFFERENT}, threshold(minutes, reached))
    assert (bool(settling.errors), bool(settling.pending)) == (is_error, not is_error)
