"""Which silver tables a pass checks, and when a table is checked again."""

from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.engine.maintenance.due import CHECK_INTERVAL, DUE_TABLES, PASS_TABLES, LastCheck, plan_check, plan_due
from dmdelta.lakehouse.maintenance.table import MaintenancePlan

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
SOON, LATER = NOW + timedelta(minutes=5), NOW + timedelta(hours=2)
T = ("d", "t")


@pytest.mark.parametrize(
    ("commits", "last", "due"),
    [
        (0, None, True),
        (3, None, True),
        (0, LastCheck(NOW - CHECK_INTERVAL), False),
        (3, LastCheck(NOW - CHECK_INTERVAL), True),
        (3, LastCheck(NOW - CHECK_INTERVAL / 2), False),
        (0, LastCheck(NOW - CHECK_INTERVAL, NOW), True),
        (0, LastCheck(NOW - CHECK_INTERVAL / 2, NOW), True),
        (0, LastCheck(NOW - CHECK_INTERVAL, SOON), False),
    ],
)
def test_a_table_is_due(commits, last, due):
    """Once in a run, an hour after a check if it has changed since, and when its old files can be removed."""
    assert plan_due({T: commits}, {T: last} if last else {}, NOW) == ([T] if due else [])


def test_a_pass_has_a_limited_number_of_tables():
    """Tables that are due come first, the longest waiting one before the others; some places are for idle tables."""
    idle = {("idle", str(number)): 0 for number in range(5_000)}
    changed = {("changed", str(number)): 1 for number in range(100)}
    checks = {name: LastCheck(NOW - CHECK_INTERVAL - timedelta(seconds=int(name[1]))) for name in changed}
    planned = plan_due({**idle, **changed}, checks, NOW)
    assert planned[:DUE_TABLES] == [("changed", str(number)) for number in range(99, 99 - DUE_TABLES, -1)]
    assert planned[DUE_TABLES:] == list(idle)[: PASS_TABLES - DUE_TABLES]
    assert plan_due(idle, {}, NOW) == list(idle)[:PASS_TABLES]
    assert plan_due({**idle, T: 1}, {}, NOW)[0] == T


@pytest.mark.parametrize(
    ("plans", "again_at"),
    [
        ([MaintenancePlan(), MaintenancePlan()], None),
        ([MaintenancePlan(again_at=LATER), MaintenancePlan()], LATER),
        ([MaintenancePlan(again_at=LATER), MaintenancePlan(again_at=SOON)], SOON),
        ([MaintenancePlan(vacuum=True, again_at=LATER), MaintenancePlan()], NOW + CHECK_INTERVAL),
    ],
)
def test_when_a_table_is_checked_again(plans, again_at):
    """When the table or its quarantine needs it; after maintenance in an hour, whether it succeeded or not."""
    assert plan_check(plans, NOW) == LastCheck(NOW, again_at)
