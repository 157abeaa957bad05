"""The day before which bronze's row changes may be removed, and what bronze records of the removal."""

from datetime import date

import pytest

from dmdelta.bronze.retention import EXPIRED_TO, KEPT_SINCE, plan_expiry, plan_marks
from dmdelta.model.position import Position


@pytest.mark.parametrize(
    ("needed", "before"),
    [
        ([], date(2026, 2, 9)),
        ([date(2026, 3, 1)], date(2026, 2, 9)),
        ([date(2026, 3, 1), date(2026, 1, 5)], date(2026, 1, 5)),
    ],
)
def test_needed_rows_do_not_expire(needed, before):
    """Rows expire by age, unless a reader is further behind."""
    assert plan_expiry(date(2026, 3, 11), 30, needed) == before


@pytest.mark.parametrize(
    ("since", "expired", "marks"),
    [
        (None, None, ("2026-02-09", "2/binlog.000010:9")),
        ("2026-02-08", "2/binlog.000009:500", ("2026-02-09", "2/binlog.000010:9")),
        ("2026-02-09", "2/binlog.000010:9", ("2026-02-09", "2/binlog.000010:9")),
        ("2026-03-04", "2/binlog.000010:10", ("2026-03-04", "2/binlog.000010:10")),
        ("2026-03-04", "3/binlog.000001:4", ("2026-03-04", "3/binlog.000001:4")),
        ("2025-12-31", "1/binlog.000099:4", ("2026-02-09", "2/binlog.000010:9")),
    ],
)
def test_the_marks_of_removed_rows_never_move_backwards(since, expired, marks):
    """A longer retention does not bring back the rows that a shorter one has removed."""
    recorded = {"delta.appendOnly": "true", f"{EXPIRED_TO}other": "1/binlog.000001:4"}
    recorded |= {KEPT_SINCE: since, f"{EXPIRED_TO}s": expired} if since is not None else {}
    planned = plan_marks(recorded, date(2026, 2, 9), {"s": Position(2, "binlog.000010", 9)})
    assert planned == dict(zip((KEPT_SINCE, f"{EXPIRED_TO}s"), marks, strict=True))
