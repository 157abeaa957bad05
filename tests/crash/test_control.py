"""Pause, resume and stop from another process, under load."""

import json
import random
import threading

import pytest

from dmdelta.checkpoint import load_points
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.engine.control.client import ask_task
from dmdelta.engine.control.state import Request, State
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_exactly_once
from tests.support.relaying import wait_until
from tests.support.workload import Workload

PAUSES = 20


@pytest.mark.long
def test_a_running_task_is_paused_resumed_and_stopped(task, spark):
    """A pause flushes all of its work, later changes are applied after the resume, and a stop ends the run."""
    file, offset, _ = task.server.position()
    task.write_spec()
    ended = []
    run = threading.Thread(target=lambda: ended.append(execute(["run", str(task.spec)])), daemon=True)
    with (
        Workload(task.server, task.database, seed=4, keyless=True, per_second=10) as workload,
        task.environment(),
    ):
        run.start()
        wait_until(lambda: applied_to(spark, task) > ORIGIN, 120)
        assert ask(task, Request.PAUSE) is State.PAUSED
        stored = load_points(spark, Lakehouse(root=str(task.root)), task.name, task.source_id)
        assert (stored.reason.value, stored.exit_point) == ("stop", None)
        workload.wait_for(workload.transactions + 5)
        assert applied_to(spark, task) == stored.global_point.position
        assert ask(task, Request.RESUME) is State.RUNNING
        wait_until(lambda: applied_to(spark, task) > stored.global_point.position, 120)
        assert ask(task, Request.STOP) is State.STOPPED
        run.join(30)
        assert ended == [0]
        workload.stop()
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


@pytest.mark.long
def test_a_table_is_read_again_while_the_task_runs(task, spark):
    """The log of the others is applied meanwhile; at the end silver equals the source, and bronze has the log once."""
    file, offset, _ = task.server.position()
    lakehouse = Lakehouse(root=str(task.root))
    orders = lakehouse.silver(task.database, "orders")
    with (
        Workload(task.server, task.database, seed=5, keyless=True, per_second=10) as workload,
        task.running(),
    ):
        wait_until(lambda: applied_to(spark, task) > ORIGIN, 120)
        assert ask(task, Request.PAUSE) is State.PAUSED  # otherwise the delete can conflict with a commit of the task
        spark.sql(f"DELETE FROM {orders} WHERE true")
        assert ask(task, Request.RESUME) is State.RUNNING
        names = [f"--table={task.database}.{table}" for table in ("orders", "page_views")]
        assert execute(["snapshot", str(task.spec), *names]) == 0
        ended = f"SELECT 1 FROM {lakehouse.metadata(f'{task.name}_snapshot')} WHERE kind = 'ended'"
        wait_until(lambda: not spark.sql(ended).isEmpty(), 120)
        before = applied_to(spark, task)
        wait_until(lambda: applied_to(spark, task) > before, 60)
        assert ask(task, Request.STOP) is State.STOPPED
        workload.stop()
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


def ask(task, request):
    return ask_task(load_spec(task.spec), request).state


def applied_to(spark, task):
    """The flushed global point."""
    stored = load_points(spark, Lakehouse(root=str(task.root)), task.name, task.source_id)
    return stored.global_point.position if stored else ORIGIN


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_process_is_paused_and_resumed_twenty_times(task, spark, capsys):
    """From another process, under load: nothing is lost or duplicated, no safe mode after a pause."""
    file, offset, _ = task.server.position()
    rng = random.Random(11)
    with Workload(task.server, task.database, seed=4, keyless=True, per_second=20) as workload, task.process() as run:
        run.wait_for('"range applied"', seconds=120)
        for _ in range(PAUSES):
            workload.wait_for(workload.transactions + rng.randrange(5, 40))
            assert asked(task, "pause", capsys)["state"] == "paused"
            assert run.poll() is None, run.log()
            applied = run.count('"range applied"')
            workload.wait_for(workload.transactions + 5)
            assert run.count('"range applied"') == applied
            assert asked(task, "resume", capsys)["state"] == "running"
            run.wait_for('"range applied"', times=applied + 1, seconds=60)
        assert asked(task, "stop", capsys)["state"] == "stopped"
        assert run.wait(30) == 0, run.log()
        assert run.count("safe mode for") + run.count("safe mode until") == 0, run.log()
        workload.stop()
    task.catch_up()
    assert_exactly_once(spark, task, (file, offset))


def asked(task, request, capsys):
    """The JSON answer of the command line."""
    capsys.readouterr()
    with task.environment():
        assert execute([request, str(task.spec), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


INTERVAL = '"reason": "interval"'


@pytest.mark.long
def test_an_update_is_effective_at_once_and_outlasts_a_pause(task, capsys):
    """An interval of an hour becomes a second while the run waits for it; an update of a stopped task fails."""
    task.syncer["checkpoint-flush-interval"] = "1h"
    with Workload(task.server, task.database, seed=4, keyless=True, per_second=10) as workload, task.process() as run:
        run.wait_for('"range applied"', seconds=120)
        workload.wait_for(workload.transactions + 20)
        assert run.count(INTERVAL) == 0
        task.syncer["checkpoint-flush-interval"] = "1s"
        task.write_spec()
        assert asked(task, "update", capsys)["checkpoint_flush_interval"] == 1.0
        run.wait_for(INTERVAL, times=2, seconds=30)
        asked(task, "pause", capsys)
        asked(task, "resume", capsys)
        run.wait_for(INTERVAL, times=run.count(INTERVAL) + 2, seconds=60)
        asked(task, "stop", capsys)
        assert run.wait(30) == 0, run.log()
        with task.environment():
            assert execute(["update", str(task.spec)]) == 1
        assert "is not running: it has stopped" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["pause", "update"])
def test_a_task_that_does_not_run_does_not_answer(task, command, capsys, monkeypatch):
    """The error states it, and how to look."""
    monkeypatch.setattr("dmdelta.engine.control.client.ANSWER_SECONDS", 1.0)
    task.write_spec()
    with task.environment():
        assert execute([command, str(task.spec)]) == 1
    assert "does not answer" in capsys.readouterr().err
