"""Kills at every named point, while writers keep changing tables, lose nothing and repeat nothing."""

import signal

from dmdelta.failpoint import CrashPoint
from tests.support.check import assert_exactly_once
from tests.support.workload import Workload

WHILE_NEW = CrashPoint.SILVER_BETWEEN_COMMITS
"""Where the first process dies, with tables just made; the later ones die in full run."""
RELAY = (CrashPoint.RELAY_BEFORE_RENAME, CrashPoint.RELAY_AFTER_RENAME)
"""Points of a process of its own: its death is seen and healed within the same run."""


def test_a_kill_at_each_crash_point_is_healed_by_a_restart(task, spark):
    """SIGKILL at a point, restart, catch up: silver = source row by row, bronze = the server's binlog. Then the next.

    One task goes through all of them, because a process takes half a minute to come up on two cores.
    """
    file, offset, _ = task.server.position()

    def check_caught_up(process):
        process.wait_applied()
        assert_exactly_once(spark, task, (file, offset))

    task.arm(WHILE_NEW)
    with Workload(task.server, task.database, seed=7, keyless=True, per_second=25) as workload:
        with task.process() as process:
            assert process.wait(150) == -signal.SIGKILL, process.log()
        for point in [point for point in CrashPoint if point not in (WHILE_NEW, *RELAY)]:
            workload.wait_for(workload.transactions + 20)
            with task.process() as process:
                with workload.paused():
                    check_caught_up(process)
                task.arm(point)
                assert process.wait(60) == -signal.SIGKILL, f"{point.value}: {process.log()}"
        workload.wait_for(workload.transactions + 20)
        with task.process() as process:
            with workload.paused():
                check_caught_up(process)
            for deaths, point in enumerate(RELAY, 1):
                task.arm(point, nth=2)
                process.wait_for("relay process ended", times=deaths)
                workload.wait_for(workload.transactions + 20)
                with workload.paused():
                    check_caught_up(process)
