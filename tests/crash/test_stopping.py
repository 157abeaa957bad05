"""Orderly ends, and a second runner that comes too many."""

import json
import time

from dmdelta.checkpoint import load_points
from dmdelta.lakehouse.place import Lakehouse
from tests.support.check import assert_exactly_once
from tests.support.task import Task
from tests.support.workload import Workload


def test_sigterm_ends_at_a_boundary_and_leaves_no_exit_point(task, spark):
    """Within seconds, with exit code 0 and nothing in doubt; the next start goes on where this one ended."""
    file, offset, _ = task.server.position()
    with Workload(task.server, task.database, seed=3, keyless=True), task.process() as process:
        process.wait_for('"range applied"', times=2, seconds=120)
        process.terminate()
        assert process.wait(25) == 0, process.log()
    stored = load_points(spark, Lakehouse(root=str(task.root)), task.name, task.source_id)
    assert stored.reason.value == "stop"
    assert stored.exit_point is None
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


def test_a_second_runner_is_fenced_out_and_the_first_goes_on(task, spark):
    """The later one ends with a clear error and exit code 5; what the first does is not disturbed."""
    file, offset, _ = task.server.position()
    with Workload(task.server, task.database, seed=5) as workload, task.process() as first:
        first.wait_for('"range applied"', seconds=120)
        with task.process() as second:
            assert second.wait(60) == 5, second.log()
            assert "another relay writes into this folder" in second.log()
        applied = first.count('"range applied"')
        first.wait_for('"range applied"', times=applied + 1)
        workload.stop()
        first.terminate()
        assert first.wait(25) == 0, first.log()
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


def test_a_second_runner_on_another_machine_is_fenced_by_the_commits(task, spark, tmp_path):
    """With a relay folder of its own no lock stops it: the Delta transactions do, and one of the two ends with Fenced."""
    file, offset, _ = task.server.position()
    other = Task(tmp_path / "elsewhere", task.server, task.database, tables=task.tables, lake=task.root)
    other.settings = task.settings
    with Workload(task.server, task.database, seed=9) as workload, task.process() as first:
        first.wait_for('"range applied"', seconds=120)
        with other.process() as second:
            loser = wait_for_one(first, second)
            assert loser.wait(30) == 5, loser.log()
            assert "another runner of this task committed" in loser.log()
            workload.stop()
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


def test_a_caught_up_task_says_that_nothing_is_new(task):
    """Run again, it reads nothing, writes nothing and says so."""
    with Workload(task.server, task.database, seed=2) as workload:
        workload.wait_for(20)
    task.catch_up()
    with task.process("--until-caught-up") as process:
        assert process.wait(90) == 0, process.log()
        last = json.loads(process.log().strip().splitlines()[-1])
    assert last["idle"] is True


def wait_for_one(first, second):
    """The first of two processes that ends."""

    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in (first, second):
            if process.poll() is not None:
                return process
        time.sleep(0.1)
    raise AssertionError(f"both still run:\n{second.log()}")
