"""A live task answers commands through its socket, and through dm_meta alone with the same result."""

import json
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest

from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.engine.control import socket_client
from dmdelta.engine.control.client import change_state
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.control.protocol import ReadStatus
from dmdelta.engine.control.socket_path import control_socket
from dmdelta.engine.control.state import Request
from dmdelta.errors import HeldByCommand
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.relaying import wait_until
from tests.support.task import Task

ORDERS = (
    "CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20))",
    "CREATE TABLE order_lines (id INT PRIMARY KEY, n INT)",
    "INSERT INTO orders VALUES (1, 'new'), (2, 'paid')",
    "INSERT INTO order_lines VALUES (1, 10)",
)


@pytest.fixture
def task(mysql80, tmp_path):
    task = Task(tmp_path, mysql80, mysql80.fresh_database("control"), mode="all")
    task.settings["validator"] = {"mode": "fast"}
    mysql80.execute(*ORDERS, database=task.database)
    return task


@contextmanager
def without_socket(monkeypatch):
    """Commands behave as on another machine."""
    with monkeypatch.context() as patch:
        patch.setattr(socket_client, "_connected", lambda _path: None)
        yield


def asked(task, capsys, *arguments, code=0):
    """The JSON answer of a command in this process, whose Spark is warm."""
    capsys.readouterr()
    command, *rest = arguments
    with task.environment():
        assert execute([command, *rest, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out) if code == 0 else None


def cold(task, *arguments):
    """The output of a command in a process of its own, which must not start a JVM, and does not import Spark."""
    program = (
        "import sys; from dmdelta.cli.main import execute; code = execute(sys.argv[1:]);"
        "assert not {'pyspark', 'delta', 'pymysql'} & sys.modules.keys(); sys.exit(code)"
    )
    with task.environment():
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def applied(status):
    if not status["sources"]:
        return False  # the task is starting
    (source,) = status["sources"]
    return source["applied_to"] == source["landed_to"] == f"2/{source['server_at']}" and source["lag_seconds"] == 0


@pytest.mark.long
def test_every_command_of_a_live_task(task, spark, capsys, monkeypatch):
    """Each command through the socket and through dm_meta alone, with the same result."""
    spec = str(task.write_spec())
    with task.process() as run:
        wait_until(lambda: served(task) or run.poll() is not None, 60)
        assert json.loads(cold(task, "status", spec, "--json"))["state"] in ("starting", "running"), run.log()
        wait_until(lambda: applied(json.loads(cold(task, "status", spec, "--json"))), 120)
        the_same_reading_commands(task, spec, capsys, monkeypatch)
        the_same_operators(task, spec, capsys, monkeypatch)
        the_same_requests(task, spec, capsys, monkeypatch, run)
        the_same_states(task, spec, capsys, monkeypatch, run)
        run.kill()
        run.wait(30)
    assert control_socket(load_spec_of(task)).exists()
    stale = asked(task, capsys, "status", spec)
    assert (stale["origin"], stale["state"]) == ("lakehouse", "running")
    with task.running():
        wait_until(lambda: is_running(task, spec), 120)
        assert json.loads(cold(task, "stop", spec, "--json"))["state"] == "stopped"
        wait_until(lambda: not control_socket(load_spec_of(task)).exists(), 60)


def test_a_task_that_is_resumed_while_a_command_works_continues_after_it(task, spark):
    """It retries meanwhile, and a second command is refused; neither ends the task."""
    with task.running():
        spec = load_spec_of(task)
        wait_until(lambda: served(task) and applied(status_of(spec)), 120)
        with exclusive_access(spec):
            assert status_of(spec)["state"] == "paused"
            with pytest.raises(HeldByCommand), exclusive_access(spec):
                pass
            assert status_of(spec)["state"] == "paused"
            change_state(spec, Request.RESUME)
            wait_until(lambda: status_of(spec)["state"] == "retrying", 60)
            assert "another command is working" in status_of(spec)["error"]
        assert status_of(spec)["state"] == "running"
        task.server.execute("INSERT INTO orders VALUES (9, 'late')", database=task.database)
        silver = Lakehouse(root=str(task.root)).silver(task.database, "orders")
        wait_until(lambda: not spark.table(silver).where("id = 9").isEmpty(), 120)


@pytest.mark.long
def test_a_command_that_a_signal_ends_resumes_the_task(task, spark):
    """`maintain` gets SIGTERM while it has paused the task, which then applies what the source writes."""
    task.settings["maintenance"] = {"automatic": False}
    task.write_spec()
    with task.process():
        wait_until(lambda: served(task) and applied(status_of(load_spec_of(task))), 120)
        task.arm(CrashPoint.MAINTENANCE_END, "hang")
        with task.process(command="maintain") as command:
            wait_until(lambda: task.hangs.exists() or command.poll() is not None, 120)
            assert status_of(load_spec_of(task))["state"] == "paused", command.log()
            command.terminate()
            assert command.wait(60) == 143, command.log()
        assert status_of(load_spec_of(task))["state"] == "running"
        task.server.execute("INSERT INTO orders VALUES (9, 'late')", database=task.database)
        silver = Lakehouse(root=str(task.root)).silver(task.database, "orders")
        wait_until(lambda: not spark.table(silver).where("id = 9").isEmpty(), 120)


def status_of(spec):
    return socket_client.ask_running(spec, ReadStatus()).result


def is_running(task, spec):
    """Whether a live process serves the task's socket and reports that the task is running."""
    return served(task) and json.loads(cold(task, "status", spec, "--json"))["state"] == "running"


def served(task):
    """Whether a live process serves the task's socket."""
    return socket_client.ask_running(load_spec_of(task), ReadStatus()) is not None


def load_spec_of(task):
    with task.environment():
        return load_spec(task.spec)


def both(task, capsys, monkeypatch, *arguments):
    """The answers through the socket, and through dm_meta."""
    live = asked(task, capsys, *arguments)
    with without_socket(monkeypatch):
        return live, asked(task, capsys, *arguments)


def the_same_reading_commands(task, spec, capsys, monkeypatch):
    wait_until(lambda: _flushed(json.loads(cold(task, "status", spec, "--json"))), 60)
    for command in (("checkpoint", "show"), ("relay", "status"), ("binlog", "list"), ("shard-ddl-lock", "list")):
        live, stored = both(task, capsys, monkeypatch, *command, spec)
        for row in (*live, *stored):
            row.pop("free_bytes", None)
        assert live == stored, command
    wait_until(lambda: asked(task, capsys, "validate", "status", spec) != [], 60)
    live, stored = both(task, capsys, monkeypatch, "validate", "status", spec)
    assert [(one["source_id"], one["mode"], len(one["tables"])) for one in live] == [("s1", "fast", 2)]
    assert [one["tables"] for one in live] == [one["tables"] for one in stored]
    live, stored = both(task, capsys, monkeypatch, "status", spec)
    assert (live["origin"], stored["origin"]) == ("task", "lakehouse")
    assert live.keys() == stored.keys()
    (here,), (there,) = live["sources"], stored["sources"]
    same = ("server_at", "relayed_to", "landed_to", "applied_to", "flushed_to", "exit_point", "flushed_because")
    assert [here[key] for key in same] == [there[key] for key in same]
    assert [(t["table"], t["applied_to"], t["delta_version"], t["flushed_at"]) for t in live["tables"]] == [
        (t["table"], t["applied_to"], t["delta_version"], t["flushed_at"]) for t in stored["tables"]
    ]


def _flushed(status):
    (source,) = status["sources"]
    return source["flushed_to"] == source["applied_to"]


def the_same_operators(task, spec, capsys, monkeypatch):
    """An operator for a statement that stops its table takes effect in the running task."""
    name = f"{task.database}.orders"

    def orders():
        status = json.loads(cold(task, "status", spec, "--json"))
        return next(table for table in status["tables"] if table["table"] == name)

    for number, connected in enumerate((True, False)):
        unsupported = f"ALTER TABLE orders ADD c{number} TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)"
        task.server.execute(unsupported, database=task.database)
        wait_until(lambda: orders()["attention"] == "stopped", 60)
        position = re.search(r"position=([^,)]+)", orders()["reason"]).group(1)
        shown = cold(task, "status", spec)
        assert position in shown
        assert max(map(len, shown.splitlines())) <= 100, shown
        arguments = ("binlog", "skip", spec, f"--position={position}")
        if connected:
            (decided,) = json.loads(cold(task, *arguments, "--json"))
        else:
            with without_socket(monkeypatch):
                (decided,) = asked(task, capsys, *arguments)
        assert (decided["position"], decided["operator"]) == (position, "skip")
        wait_until(
            lambda: orders()["attention"] is None and applied(json.loads(cold(task, "status", spec, "--json"))), 60
        )
        live, stored = both(task, capsys, monkeypatch, "binlog", "list", spec)
        assert live == stored
        assert len(live) == number + 1


def the_same_requests(task, spec, capsys, monkeypatch, run):
    """Update and snapshot."""
    task.syncer["checkpoint-flush-interval"] = "3s"
    task.write_spec()
    live, stored = both(task, capsys, monkeypatch, "update", spec)
    assert live == stored
    assert live["checkpoint_flush_interval"] == 3.0
    for times in (1, 2):
        arguments = ("snapshot", spec, f"--table={task.database}.order_lines")
        if times == 1:
            requested = asked(task, capsys, *arguments)
        else:
            with without_socket(monkeypatch):
                requested = asked(task, capsys, *arguments)
        assert requested == [{"source": "s1", "table": f"{task.database}.order_lines"}]
        run.wait_for('"ad-hoc snapshot applied"', times=times)


def the_same_states(task, spec, capsys, monkeypatch, run):
    """Pause, resume and stop."""
    for connected in (True, False):
        for command, state in (("pause", "paused"), ("resume", "running")):
            if connected:
                answer = json.loads(cold(task, command, spec, "--json"))
            else:
                with without_socket(monkeypatch):
                    answer = asked(task, capsys, command, spec)
            assert (answer["task"], answer["state"]) == (task.name, state)
            assert answer["process"].endswith(f":{run.pid}")
            assert json.loads(cold(task, "status", spec, "--json"))["state"] == state
