"""A kill at every named point, while a writer keeps changing tables, loses nothing and repeats nothing."""

import signal

import pytest

from dmdelta.failpoint import CrashPoint
from tests.support.check import assert_exactly_once
from tests.support.workload import Workload

FIRST = {CrashPoint.CHECKPOINT_MID_FLUSH, CrashPoint.SILVER_BETWEEN_COMMITS}
"""Points to die at when first passed; at the others the third time, in full run."""
RELAY = {CrashPoint.RELAY_BEFORE_RENAME, CrashPoint.RELAY_AFTER_RENAME}


@pytest.mark.parametrize("point", list(CrashPoint), ids=lambda point: point.value)
def test_a_kill_at_a_crash_point_is_healed_by_a_restart(point, task, spark):
    """SIGKILL at the point, restart, catch up: silver = source row by row, bronze = the server's binlog."""
    file, offset, _ = task.server.position()
    with Workload(task.server, task.database, seed=7, keyless=True) as workload:
        with task.process(crash_at=point, nth=1 if point in FIRST else 3) as process:
            if point in RELAY:
                # The relay is a process of its own: its death is seen and healed within the same run.
                process.wait_for("relay process ended")
                process.kill()
            else:
                assert process.wait(150) == -signal.SIGKILL, process.log()
        workload.wait_for(workload.transactions + 20)
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))
