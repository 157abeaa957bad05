"""Kills at every named point, while writers change tables, lose nothing and repeat nothing."""

import signal

import pytest

from dmdelta.failpoint import CrashPoint
from tests.support.check import assert_exactly_once
from tests.support.workload import Workload

WHILE_NEW = CrashPoint.SILVER_AFTER_COMMIT
"""The point of the first kill, with tables just created."""
STATEMENTS = {
    CrashPoint.SILVER_BEFORE_CHANGE: "ALTER TABLE orders MODIFY total DECIMAL(16,4) NOT NULL",
    CrashPoint.SILVER_AFTER_CHANGE: "ALTER TABLE inventory MODIFY quantity BIGINT NOT NULL",
}
"""The statement at the source that makes the task pass a point."""
SNAPSHOT = tuple(point for point in CrashPoint if point.name.startswith("SNAPSHOT"))
"""Points of a full load: test_full_load_kills.py."""
SINK = tuple(point for point in CrashPoint if point.name.startswith("SINK"))
"""Points of the sink: tests/integration/test_sink.py."""
RELAY = (CrashPoint.RELAY_BEFORE_RENAME, CrashPoint.RELAY_AFTER_RENAME)
"""Points of the relay's process: the run notices its death and restarts it."""
ELSEWHERE = (*SNAPSHOT, *SINK, CrashPoint.RELAY_MID_TRANSACTION, CrashPoint.RELAY_ROTATED)
SELDOM = (
    CrashPoint.SILVER_BETWEEN_COMMITS,
    CrashPoint.MEMORY_EVICTED,
    *(point for point in CrashPoint if point.name.startswith("MAINTENANCE")),
)
"""Points that this task may not pass: test_fault_matrix.py."""
EVERY = tuple(point for point in CrashPoint if point not in (*RELAY, *ELSEWHERE, *SELDOM))
ONE_OF_EACH = (WHILE_NEW, CrashPoint.LAND_AFTER_COMMIT, CrashPoint.CHECKPOINT_MID_FLUSH)
"""A point of each stage except the relay."""


def test_each_run_resumes_after_a_killed_one(task, spark, record_property):
    """Killed at a point of each stage, one run after the other, and finally the last run's relay."""
    file, offset, _ = task.server.position()
    with Workload(task.server, task.database, seed=7, keyless=True, per_second=10) as workload:
        for point in ONE_OF_EACH:
            kill_at(point, task, workload)
        workload.wait_for(workload.transactions + 20)
        task.arm(RELAY[1])
        restart(task, spark, workload, (file, offset))
        assert not task.failpoint.exists(), f"{RELAY[1].value} was never passed"
    record_property("faults", len(ONE_OF_EACH) + 1)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_restart_recovers_from_a_kill_at_a_crash_point(task, spark, record_property):
    """SIGKILL at a point, restart, catch up: silver = source row by row, bronze = the server's binlog; at every point.

    One task passes all of them. Killed runs are processes of their own; restarts run here, where Spark is warm:
    a new process takes half a minute to start on two cores.
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
    record_property("faults", len(EVERY) + len(RELAY))


def kill_at(point, task, workload):
    """A run in a process of its own, which is killed there."""
    workload.wait_for(workload.transactions + 20)
    if point in STATEMENTS:
        task.server.execute(STATEMENTS[point], database=task.database)
    task.arm(point)
    with task.process() as process:
        assert process.wait(150) == -signal.SIGKILL, f"{point.value}: {process.log()}"


def restart(task, spark, workload, since):
    """Catch up with an idle source, and check that everything was applied exactly once."""
    with workload.paused():
        task.catch_up()
        assert_exactly_once(spark, task, since)
