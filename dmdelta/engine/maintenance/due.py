"""Which silver tables a run checks that get few commits: changed ones, those with old files, and every one once.

A check reads a table's history and row count, which takes Spark seconds on a busy machine. A pass therefore checks a
limited number of tables, however many the task has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from dmdelta.lakehouse.maintenance.table import MaintenancePlan
from dmdelta.model.schema import TableName

PASS_TABLES = 20
"""Maximum number of tables in a pass."""
DUE_TABLES = 15
"""Maximum number of tables in a pass that are due; the others are checked for the first time in the run."""
CHECK_INTERVAL = timedelta(hours=1)
"""The shortest time between two checks of a table that gets few commits."""


@dataclass(frozen=True, slots=True)
class LastCheck:
    """The last check of a silver table by a run.

    Attributes:
        at: in UTC.
        again_at: when to check it although nothing writes it meanwhile; None: not before its next change.
    """

    at: datetime
    again_at: datetime | None = None


def plan_check(plans: Iterable[MaintenancePlan], now: datetime) -> LastCheck:
    """The check of a table at `now`, which resulted in plans for the table and its quarantine."""
    times = [now + CHECK_INTERVAL if plan.actions else plan.again_at for plan in plans]
    return LastCheck(now, min((time for time in times if time is not None), default=None))


def plan_due(commits: Mapping[TableName, int], checks: Mapping[TableName, LastCheck], now: datetime) -> list[TableName]:
    """The silver tables to check now: those that are due, the longest waiting first, then some that were never checked.

    Args:
        commits: the number of commits since the last check for every silver table of the source.
        checks: the last checks in this run.
    """

    def is_due(name: TableName) -> bool:
        last = checks.get(name)
        if last is None:
            return commits[name] > 0
        has_changed = commits[name] > 0 and now - last.at >= CHECK_INTERVAL
        return has_changed or (last.again_at is not None and now >= last.again_at)

    never = datetime.min.replace(tzinfo=timezone.utc)
    due = sorted(filter(is_due, commits), key=lambda name: checks[name].at if name in checks else never)[:DUE_TABLES]
    idle = [name for name in commits if name not in checks and not commits[name]]
    return [*due, *idle[: PASS_TABLES - len(due)]]
