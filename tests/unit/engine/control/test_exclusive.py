"""Exclusive access for commands: real locks and a real control socket; the run is replaced by what it does with them."""

import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.engine.control.client import ask_task, withdraw_pause
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.control.socket_server import serving_commands
from dmdelta.engine.control.state import Answer, Request, State
from dmdelta.engine.control.table import ControlTable
from dmdelta.engine.task.mapping import relay_task
from dmdelta.engine.task.task import open_metadata
from dmdelta.errors import Fenced, HeldByCommand, StageFailed
from dmdelta.source.relay import relay_dir
from dmdelta.source.relay.relay_dir import locked, locked_for_command, locked_for_run


class Run:
    """A run that holds its relay folder except while it is paused; its relay ends first if it has caught up."""

    def __init__(self, folder, failure=None, locks=(locked_for_run, locked)):
        self.folder = folder
        self.failure = failure
        self.locks = locks
        self.requests = []
        self.before_resume = lambda: None
        self.held = ExitStack()
        self.hold()

    def hold(self):
        for lock in self.locks:
            self.held.enter_context(lock(self.folder))

    def execute(self, command):
        self.requests.append(command.command)
        if command.command is Request.PAUSE:
            if self.failure is not None:
                raise self.failure
            self.held.close()
        elif self.failure is None:
            self.before_resume()
            self.hold()
        return Answer("t", State.PAUSED, "host:1")


@pytest.fixture
def spec(monkeypatch):
    """A task whose locks are awaited briefly, with a short path for its socket."""
    monkeypatch.setattr(relay_dir, "LOCK_SECONDS", 0.0)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path, source = Path(folder) / "task.yml", {"source-id": "s1", "binlog-dir": folder}
        path.write_text(yaml.safe_dump({"name": "t", "sources": [source], "lakehouse": {"root": folder}}))
        yield load_spec(path)


@pytest.fixture
def folder(spec):
    return relay_task(spec, spec.sources[0], until_caught_up=True).folder


def test_a_second_command_neither_pauses_nor_resumes_the_task(spec, folder):
    """It fails, and the first one keeps its access; afterwards another command can work."""
    run = Run(folder)
    with serving_commands(spec, run):
        with exclusive_access(spec):
            with pytest.raises(HeldByCommand, match="another command is working"), exclusive_access(spec):
                pass
            assert run.requests == [Request.PAUSE]
            with pytest.raises(HeldByCommand), locked(folder):
                pass
        assert run.requests == [Request.PAUSE, Request.RESUME]
        with exclusive_access(spec):
            assert run.requests[2:] == [Request.PAUSE]
    run.held.close()


@pytest.mark.parametrize("lock", [locked_for_run, locked])
def test_one_of_the_locks_shows_that_the_task_is_running(spec, folder, lock):
    """A run writes silver after its relay has caught up; a relay may outlive a run that was killed."""
    run = Run(folder, locks=[lock])
    with serving_commands(spec, run):
        with exclusive_access(spec):
            assert run.requests == [Request.PAUSE]
            for each in (locked_for_run, locked):
                with pytest.raises(HeldByCommand), each(folder):
                    pass
        assert run.requests == [Request.PAUSE, Request.RESUME]
    run.held.close()


@pytest.mark.parametrize("failure", [StageFailed("not paused after 60 s", hint="wait"), KeyboardInterrupt()])
def test_a_pause_that_fails_is_withdrawn(spec, folder, failure, monkeypatch):
    """The task does not stay paused if it pauses later."""
    run = Run(folder, StageFailed("not paused after 60 s", hint="wait"))
    if isinstance(failure, KeyboardInterrupt):
        monkeypatch.setattr("dmdelta.engine.control.exclusive.change_state", interrupted(failure))
    with serving_commands(spec, run), pytest.raises(type(failure)), exclusive_access(spec):
        pytest.fail("it has no access")
    assert run.requests[-1] is Request.RESUME
    run.held.close()
    with exclusive_access(spec):
        assert run.requests[-1] is Request.RESUME


def interrupted(failure):
    def change_state(_spec, _request):
        raise failure

    return change_state


def test_a_pause_is_withdrawn_through_dm_meta_while_the_task_reports_that_it_is_running(spec):
    """A resume that waits for that state would send nothing."""
    task = open_metadata(spec)
    table = ControlTable(task.spark, task.lakehouse, spec.name)
    table.publish(State.RUNNING)
    table.ask(Request.PAUSE)
    ask_task(spec, Request.RESUME)
    assert table.asked().request.request is Request.PAUSE
    withdraw_pause(spec)
    assert table.asked().request.request is Request.RESUME


def test_a_folder_that_another_run_holds_is_not_held_by_a_command(folder, monkeypatch):
    """Neither while a command waits for it: only the process that holds both locks has its access."""
    monkeypatch.setattr(relay_dir, "LOCK_SECONDS", 0.0)
    with locked(folder):
        with pytest.raises(Fenced) as raised, locked(folder):
            pass
        assert not isinstance(raised.value, HeldByCommand)
        (folder / ".lock").write_text("1")
        with locked_for_command(folder), pytest.raises(Fenced) as raised, locked(folder):
            pass
        assert not isinstance(raised.value, HeldByCommand)


PROGRAM = """
import signal, sys, time
from pathlib import Path
from dmdelta.config import load_spec
from dmdelta.engine.control.exclusive import exclusive_access
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
with exclusive_access(load_spec(Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("first", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_that_ends_a_command_resumes_the_task(spec, folder, first, code):
    """Also if a second one arrives meanwhile, as from `timeout` and at the end of a terminal."""
    run = Run(folder)
    with serving_commands(spec, run), command_of(spec) as process:
        assert process.stdout.readline() == "held\n"
        run.before_resume = lambda: process.send_signal(first)
        process.send_signal(first)
        assert process.wait(30) == code
    assert run.requests == [Request.PAUSE, Request.RESUME]
    run.held.close()


@contextmanager
def command_of(spec):
    """A process that excludes the task, always killed at the end."""
    path = Path(spec.lakehouse.root) / "task.yml"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
