"""Kills at every named point, while writers keep changing tables, lose nothing and repeat nothing."""

import signal

import pytest

from dmdelta.failpoint import CrashPoint
from tests.support.check import assert_exactly_once
from tests.support.workload import Workload

WHILE_NEW = CrashPoint.SILVER_AFTER_COMMIT
"""Where the first process dies, with tables just made."""
STATEMENTS = {
    CrashPoint.SILVER_BEFORE_CHANGE: "ALTER TABLE orders MODIFY total DECIMAL(16,4) NOT NULL",
    CrashPoint.SILVER_AFTER_CHANGE: "ALTER TABLE inventory MODIFY quantity BIGINT NOT NULL",
}
"""What happens at the source for a point to be passed."""
SNAPSHOT = tuple(point for point in CrashPoint if point.name.startswith("SNAPSHOT"))
"""Points of a full load: test_full_load_kills.py."""
SINK = tuple(point for point in CrashPoint if point.name.startswith("SINK"))
"""Points of the sink: tests/integration/test_sink.py."""
RELAY = (CrashPoint.RELAY_BEFORE_RENAME, CrashPoint.RELAY_AFTER_RENAME)
"""Points of a process of its own: its death is seen and healed within the same run."""
ELSEWHERE = (*SNAPSHOT, *SINK, CrashPoint.RELAY_MID_TRANSACTION, CrashPoint.RELAY_ROTATED)
SELDOM = (
    CrashPoint.SILVER_BETWEEN_COMMITS,
    CrashPoint.MEMORY_EVICTED,
    *(point for point in CrashPoint if point.name.startswith("CARE")),
)
"""Points that this task does not pass for certain: test_fault_matrix.py."""
EVERY = tuple(point for point in CrashPoint if point not in (*RELAY, *ELSEWHERE, *SELDOM))
ONE_OF_EACH = (WHILE_NEW, CrashPoint.LAND_AFTER_COMMIT, CrashPoint.CHECKPOINT_MID_FLUSH)
"""A point of each stage but the relay."""


def test_each_run_resumes_after_a_killed_one(task, spark):
    """Killed at a point of each stage, one run after the other, and the last run's relay too: then as below."""
    file, offset, _ = task.server.position()
    with Workload(task.server, task.database, seed=7, keyless=True, per_second=10) as workload:
        for point in ONE_OF_EACH:
            kill_at(point, task, workload)
        workload.wait_for(workload.transactions + 20)
        task.arm(RELAY[1])
        restart(task, spark, workload, (file, offset))
        assert not task.failpoint.exists(), f"{RELAY[1].value} was never passed"


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_kill_at_a_crash_point_is_healed_by_a_restart(task, spark):
    """SIGKILL at a point, restart, catch up: silver = source row by row, bronze = the server's binlog. Then the next.

    One task goes through all of them. What dies is a process of its own; what takes over runs here, where Spark is warm:
    a new one takes half a minute to come up on two cores.
    """
    file, offset, _ = task.server.position()
    with Workload(task.server, task.database, seed=7, keyless=True, per_second=10) as workload:
        for point in (WHILE_NEW, *(point for point in EVERY if point is not WHILE_NEW)):
            kill_at(point, task, workload)
            restart(task, spark, workload, (file, offset))
        for point in RELAY:
            workload.wait_for(workload.transactions + 20)
            task.arm(point)
            restart(task, spark, workload, (file, offset))
            assert not task.failpoint.exists(), f"{point.value} was never passed"


def kill_at(point, task, workload):
    """A run in a process of its own, which dies there."""
    workload.wait_for(workload.transactions + 20)
    if point in STATEMENTS:
        task.server.execute(STATEMENTS[point], database=task.database)
    task.arm(point)
    with task.process() as process:
        assert process.wait(150) == -signal.SIGKILL, f"{point.value}: {process.log()}"


def restart(task, spark, workload, since):
    """Catch up with a source that holds still, and look whether it was exactly once."""
    with workload.paused():
        task.catch_up()
        assert_exactly_once(spark, task, since)
