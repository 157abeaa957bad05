"""Kills at random moments, of the runner and of its relay."""

import os
import random
import signal
import time

import pytest

from tests.support.check import assert_exactly_once
from tests.support.workload import Workload

KILLS = 20
RELAY_KILLS = 4
"""Before each kill of the runner, which takes long to start again."""


@pytest.mark.long
def test_twenty_random_kills_leave_silver_equal_to_the_source(task, spark, record_property):
    """Kills at any time, also during a start: after a last catch-up nothing is lost or duplicated."""
    seed = int(os.environ.get("DMDELTA_TEST_SEED") or time.time_ns() % 1_000_000)
    print(f"random kills: DMDELTA_TEST_SEED={seed}")
    rng = random.Random(seed)
    file, offset, _ = task.server.position()
    kills = 0
    with Workload(task.server, task.database, seed=seed, keyless=True, per_second=20):
        while kills < KILLS:
            with task.process() as process:
                for relay in range(1, RELAY_KILLS + 1):
                    process.wait_for("relay connected", times=relay)
                    time.sleep(rng.uniform(0.0, 2.0))
                    os.kill(process.relay_pid(), signal.SIGKILL)
                    kills += 1
                time.sleep(rng.uniform(0.0, 20.0))
                assert process.poll() is None, process.log()
                process.kill()
                kills += 1
    record_property("faults", kills)
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))
