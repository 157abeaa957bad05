"""The maintenance that a table's history implies."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.lakehouse.maintenance.table import (
    COMPACT_FILES,
    HISTORY_COMMITS,
    LOG_FILES,
    MaintenanceAction,
    MaintenancePlan,
    TableHealth,
    plan_maintenance,
    table_health_of,
)
from dmdelta.lakehouse.retention import DELTA, SILVER

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
JUST_NOW = NOW - timedelta(minutes=1)


def action(operation, hours=1.0, **metrics):
    return MaintenanceAction(
        NOW - timedelta(hours=hours), operation, {name: str(value) for name, value in metrics.items()}
    )


def test_counts_start_at_the_last_maintenance():
    """Files since the last compaction, dead rows since the last purge; other commits are ignored."""
    history = [
        action("VACUUM END", 1, numDeletedFiles=9),
        action("VACUUM START", 2),
        action("SET TBLPROPERTIES", 3),
        action("WRITE", 4, numFiles=2, numDeletedRows=5),
        action("MERGE", 5, numTargetFilesAdded=3, numTargetRowsUpdated=7, numTargetRowsDeleted=1),
        action("OPTIMIZE", 6, numAddedFiles=1, numRemovedFiles=50),
        action("DELETE", 7, numDeletedRows=11, numAddedFiles=0),
        action("REORG", 8, numAddedFiles=4),
        action("DELETE", 9, numDeletedRows=1000),
    ]
    begun = NOW - timedelta(hours=9)
    assert table_health_of(history, 90) == TableHealth(
        5, 24, 90, NOW - timedelta(hours=4), NOW - timedelta(hours=1), begun
    )
    assert table_health_of(history[4:], 90) == TableHealth(3, 19, 90, NOW - timedelta(hours=5), made_at=begun)
    assert table_health_of([action("WRITE", numFiles=1)] * HISTORY_COMMITS, 90).made_at is None
    assert table_health_of(history[5:], 90).written_at == NOW - timedelta(hours=6)
    assert table_health_of([], 0) == TableHealth()
    full = replace(history[5], full=True)
    assert table_health_of([*history[:5], full, *history[6:]], 90).dead_rows == 13
    assert table_health_of([*history[:5], full, *history[6:]], 90).new_files == 5


@pytest.mark.parametrize(
    ("wear", "actions", "thorough"),
    [
        (TableHealth(COMPACT_FILES - 1, vacuumed_at=JUST_NOW), [], ["compact"]),
        (TableHealth(COMPACT_FILES, vacuumed_at=JUST_NOW), ["compact"], ["compact"]),
        (TableHealth(1, vacuumed_at=JUST_NOW), [], []),
        (TableHealth(0, 25, 100, vacuumed_at=JUST_NOW), ["purge"], ["purge"]),
        (TableHealth(0, 24, 100, vacuumed_at=JUST_NOW), [], []),
        (TableHealth(0, 0, 0, vacuumed_at=JUST_NOW), [], []),
        (TableHealth(), ["vacuum"], ["vacuum"]),
        (TableHealth(made_at=JUST_NOW), [], ["vacuum"]),
        (TableHealth(made_at=NOW - DELTA.files), ["vacuum"], ["vacuum"]),
        (TableHealth(made_at=NOW - SILVER.files, retention=SILVER), ["vacuum"], ["vacuum"]),
        (TableHealth(written_at=JUST_NOW, vacuumed_at=NOW - timedelta(hours=23)), [], ["vacuum"]),
        (TableHealth(written_at=JUST_NOW, vacuumed_at=NOW - timedelta(hours=25)), ["vacuum"], ["vacuum"]),
        (TableHealth(written_at=JUST_NOW, vacuumed_at=NOW - SILVER.vacuum, retention=SILVER), ["vacuum"], ["vacuum"]),
        (TableHealth(written_at=NOW - 2 * DELTA.files, vacuumed_at=NOW - timedelta(days=3)), [], []),
        (TableHealth(vacuumed_at=JUST_NOW, old_log_files=LOG_FILES), ["clean"], ["clean"]),
        (TableHealth(vacuumed_at=JUST_NOW, old_log_files=LOG_FILES - 1), [], ["clean"]),
        (TableHealth(vacuumed_at=JUST_NOW, unset=True), ["retain"], ["retain"]),
    ],
)
def test_a_plan_from_the_tables_state(wear, actions, thorough):
    """Small files, dead rows and old commits by their number; old files periodically, until none are left to remove."""
    assert plan_maintenance(wear, NOW).actions == actions
    assert plan_maintenance(wear, NOW, thorough=True).actions == thorough


def test_nothing_to_do():
    """The plan without maintenance has no actions."""
    assert MaintenancePlan().actions == []
    assert MaintenancePlan(purge=True, vacuum=True).actions == ["purge", "vacuum"]


@pytest.mark.parametrize(
    ("wear", "again_at"),
    [
        (TableHealth(made_at=JUST_NOW, retention=SILVER), JUST_NOW + SILVER.files),
        (
            TableHealth(written_at=JUST_NOW, vacuumed_at=NOW - timedelta(hours=1), retention=SILVER),
            NOW - timedelta(hours=1) + SILVER.vacuum,
        ),
        (
            TableHealth(written_at=NOW - SILVER.files, vacuumed_at=NOW, retention=SILVER),
            NOW - SILVER.files + SILVER.log,
        ),
        (TableHealth(written_at=NOW - SILVER.log, vacuumed_at=NOW, retention=SILVER), None),
        (TableHealth(vacuumed_at=NOW - timedelta(days=1), retention=SILVER), None),
    ],
)
def test_when_a_table_needs_maintenance_that_nothing_writes(wear, again_at):
    """When VACUUM can remove more of what the last write has replaced, and when its commits are old; then never."""
    plan = plan_maintenance(wear, NOW)
    assert (plan.actions, plan.again_at) == ([], again_at)
