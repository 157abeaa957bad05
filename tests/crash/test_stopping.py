"""Orderly ends, and a second runner of the same task."""

import json
import time

import pytest

from dmdelta.checkpoint import load_points
from dmdelta.cli.main import execute
from dmdelta.errors import Fenced
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.source.relay.relay_task import read_status
from tests.support.check import assert_exactly_once
from tests.support.relaying import wait_until
from tests.support.task import Task
from tests.support.workload import Workload


def test_sigterm_ends_at_a_boundary_and_a_second_runner_is_fenced_out(task, spark, capsys):
    """The second one ends with a clear error and exit code 5, the first continues; SIGTERM then ends it within seconds
    with code 0 and a complete checkpoint. The next start resumes there, and the one after it reports nothing new.
    """
    file, offset, _ = task.server.position()
    task.settings["metrics"] = {"port": 0}
    with Workload(task.server, task.database, seed=3, keyless=True, per_second=20) as workload, task.process() as first:
        first.wait_for('"range applied"', seconds=120)
        assert_metrics_tell(first, task)
        with task.environment():
            assert execute(["run", str(task.spec), "--until-caught-up"]) == 5
        assert "another run writes to this folder" in capsys.readouterr().err
        applied, landed = first.count('"range applied"'), first.count('"batch landed"')
        first.wait_for('"range applied"', times=applied + 1)
        first.wait_for('"batch landed"', times=landed + 2)
        asked = time.monotonic()
        first.terminate()
        assert first.wait(30) == 0, first.log()
        print(f"stopped {time.monotonic() - asked:.1f} s after SIGTERM")
        workload.stop()
    stored = load_points(spark, Lakehouse(root=str(task.root)), task.name, task.source_id)
    assert stored.reason.value == "stop"
    assert stored.exit_point is None
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))
    capsys.readouterr()
    task.catch_up()
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["idle"] is True


@pytest.mark.long
def test_a_run_that_ends_by_itself_is_alone_until_silver_has_caught_up(task, spark, capsys):
    """Its relay has ended before, and no longer holds the relay folder."""
    task.server.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)", database=task.database
    )
    task.arm(CrashPoint.SILVER_BEFORE_COMMIT, "hang")
    with task.process("--until-caught-up") as first:
        wait_until(task.hangs.exists, 120)
        wait_until(lambda: relay_state(task) == "caught up")
        with task.environment():
            assert execute(["run", str(task.spec), "--until-caught-up"]) == Fenced.exit_code
        assert "another run writes to this folder" in capsys.readouterr().err
        task.hangs.unlink()
        assert first.wait(60) == 0, first.log()
    (row,) = spark.table(Lakehouse(root=str(task.root)).silver(task.database, "orders")).collect()
    assert row["id"] == 1


def relay_state(task: Task) -> str:
    status = read_status(task.relay / task.source_id)
    return status.state if status is not None else ""


@pytest.mark.long
def test_a_second_runner_on_another_machine_is_fenced_by_the_commits(task, spark, tmp_path):
    """With a relay folder of its own no lock stops it: the Delta transactions do, and one of both ends with Fenced."""
    file, offset, _ = task.server.position()
    other = Task(tmp_path / "elsewhere", task.server, task.database, tables=task.tables, lake=task.root)
    other.settings = task.settings
    with Workload(task.server, task.database, seed=9, keyless=True, per_second=20) as workload, task.process() as first:
        first.wait_for('"range applied"', seconds=120)
        with other.process() as second:
            loser = wait_for_one(first, second)
            assert loser.wait(30) == 5, loser.log()
            assert "another runner of this task committed" in loser.log()
            workload.stop()
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


def assert_metrics_tell(process, task):
    """`/metrics` of a running task: what was applied, the stages' positions, and their lag."""
    deadline, stages = time.monotonic() + 30, set[str]()
    while not {"server", "relayed", "landed", "applied"} <= stages:  # the values are a moment old
        assert time.monotonic() < deadline, stages
        time.sleep(0.2)
        figures = process.figures()
        stages = {sample.labels["stage"] for sample in figures["dmdelta_position_file"]}
    applied = {sample.labels["table"] for sample in figures["dmdelta_rows_applied"] if sample.value > 0}
    assert applied <= {f"{task.database}.{table}" for table in task.tables}
    assert applied
    assert all(sample.value >= 0 for sample in figures["dmdelta_lag_seconds"])
    assert [sample.value for sample in figures["dmdelta_relay_streams"]] == [1.0]


def wait_for_one(first, second):
    """The first of two processes that ends."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in (first, second):
            if process.poll() is not None:
                return process
        time.sleep(0.1)
    raise AssertionError(f"both still run:\n{second.log()}")
