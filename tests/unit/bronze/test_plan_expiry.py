"""The day before which bronze's row changes may be removed."""

from datetime import date

import pytest

from dmdelta.bronze.retention import plan_expiry


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
