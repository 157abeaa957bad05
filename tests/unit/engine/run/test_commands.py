"""Commands in a run: what they wait for, and what follows them. The loops are replaced."""

import threading
from types import SimpleNamespace

import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.engine.control import listener
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.protocol import ChangeState, ListOperators, ReadStatus
from dmdelta.engine.control.state import Request, State
from dmdelta.engine.run import commands as commands_module
from dmdelta.engine.run import runner
from dmdelta.engine.run.commands import Attempt, RunCommands
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.errors import ConfigError, HeldByCommand, SourceUnavailable, StageFailed
from dmdelta.model.retry import Retry


class Run:
    """A run whose attempts are functions: each gets the run and returns like `_follow`."""

    def __init__(self, spec, *attempts):
        self.stop, self.reported, self.attempts = StopRequest(), [], list(attempts)
        self.commands = RunCommands(spec, self.stop, RunCounters(lambda _: None))
        self.following = runner._Following(
            task=SimpleNamespace(spec=spec),
            relayings=(),
            counters=RunCounters(lambda _: None),
            metrics=None,
            stop=self.stop,
            ends=False,
            commands=self.commands,
        )

    def publish(self, state, error=None):
        self.reported.append(state)

    def end(self, monkeypatch):
        """Run all attempts."""
        monkeypatch.setattr(runner, "_follow", lambda _following, _control: self.attempts.pop(0)(self))
        return runner._follow_with_retries(self.following, self)


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "task.yml"
    source = {"source-id": "s1", "binlog-dir": str(tmp_path)}
    path.write_text(yaml.safe_dump({"name": "t", "sources": [source], "lakehouse": {"root": str(tmp_path)}}))
    return load_spec(path)


def test_a_failure_is_reported_although_its_state_cannot_be_recorded(spec, monkeypatch):
    """What cannot be recorded has often failed for the same reason, which the first error names."""

    def fail(_run):
        raise StageFailed("Spark ran out of memory", hint="give it more")

    def refuse(_state, _error=None):
        raise StageFailed("the JVM ended", hint="see its log")

    run = Run(spec, fail)
    run.publish = refuse
    with pytest.raises(StageFailed, match="ran out of memory"):
        run.end(monkeypatch)
    assert run.commands.state.now.state is State.FAILED


def stopped(run):
    run.stop.request()
    return True


def test_a_resume_before_the_pause_is_complete_continues(spec, monkeypatch):
    """The sources start again; the run does not end."""

    def paused_and_resumed(run):
        run.stop.pause()
        run.stop.resume()
        return True

    run = Run(spec, paused_and_resumed, stopped)
    assert run.end(monkeypatch)
    assert run.attempts == []
    assert run.reported == []


def test_a_restart_for_operators_continues_with_the_next_attempt(spec, monkeypatch):
    """Without a pause in between; a run that has caught up ends nevertheless."""

    def restarted(run):
        run.commands.restart.set()
        return True

    run = Run(spec, restarted, lambda _run: False)
    assert not run.end(monkeypatch)
    assert run.attempts == []


def test_a_failed_attempt_that_is_paused_and_resumed_runs_again(spec, monkeypatch):
    """The states are reported in their order."""

    def fails(run):
        run.stop.pause()
        threading.Timer(0.05, run.stop.resume).start()
        raise SourceUnavailable("gone", hint="wait")

    run = Run(spec, fails, stopped)
    assert run.end(monkeypatch)
    assert run.reported in ([State.RETRYING, State.PAUSED, State.RUNNING], [State.RETRYING, State.RUNNING])


def test_a_run_that_is_resumed_while_a_command_works_continues_after_it(spec, monkeypatch):
    """It does not end with the command's lock as its failure."""
    monkeypatch.setattr(listener, "AUTO_RESUME", Retry(first=0.0))

    def begins(run):
        run.commands.begin(run.following.task, Attempt((), ()))
        run.commands.restart.set()
        return True

    def held(_run):
        raise HeldByCommand("another command is working", hint="retry")

    run = Run(spec, begins, held, stopped)
    assert run.end(monkeypatch)
    assert run.reported == [State.RETRYING, State.RUNNING]


@pytest.mark.parametrize("pauses", [True, False])
def test_a_failure_while_no_source_runs_ends_the_run(spec, monkeypatch, pauses):
    """During a pause, and while the run waits for its retry: the task has failed, and the error is raised."""

    def fails(run):
        if pauses:
            run.stop.pause()
        threading.Timer(0.05, lambda: run.stop.fail(ConfigError("unreadable", hint="fix it"))).start()
        raise SourceUnavailable("gone", hint="wait")

    run = Run(spec, fails)
    with pytest.raises(ConfigError, match="unreadable"):
        run.end(monkeypatch)
    assert run.reported[-1] is run.commands.state.now.state is State.FAILED


def test_a_transient_failure_that_has_stopped_the_run_is_not_retried(spec, monkeypatch):
    """The run cannot continue, so it fails."""

    def fails(run):
        run.stop.fail(SourceUnavailable("gone", hint="wait"))
        raise run.stop.failure

    run = Run(spec, fails)
    with pytest.raises(SourceUnavailable):
        run.end(monkeypatch)
    assert run.reported == [State.FAILED]


def test_a_pause_is_answered_once_the_task_has_paused(spec):
    """The answer does not arrive at the time of the request."""
    run = Run(spec)
    run.commands.state.publish(State.RUNNING)
    threading.Timer(0.1, lambda: run.commands.state.publish(State.PAUSED)).start()
    answer = run.commands.execute(ChangeState(command=Request.PAUSE))
    assert (answer.task, answer.state) == ("t", State.PAUSED)
    assert run.stop.is_pause


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (State.FAILED, ConfigError("wrong", hint="fix it"), "has failed: wrong"),
        (State.STOPPED, None, "has stopped"),
    ],
)
def test_a_pause_of_a_task_that_ends_is_an_error(spec, state, error, text):
    """The same as through dm_meta."""
    run = Run(spec)
    run.commands.state.publish(state, error)
    with pytest.raises(StageFailed, match=text):
        run.commands.execute(ChangeState(command=Request.PAUSE))


def test_a_request_that_takes_too_long_remains_in_effect(spec, monkeypatch):
    """The error says so."""
    monkeypatch.setattr(commands_module, "ANSWER_SECONDS", 0.05)
    run = Run(spec)
    with pytest.raises(StageFailed, match="not stopped after"):
        run.commands.execute(ChangeState(command=Request.STOP))
    assert run.stop.requested


def test_a_task_that_starts_has_a_status(spec, monkeypatch):
    """Commands that need its sources wait for them."""
    run = Run(spec)
    status = TaskStatus.model_validate(run.commands.execute(ReadStatus()))
    assert (status.state, status.sources, status.tables) == ("starting", (), ())
    monkeypatch.setattr(commands_module, "ANSWER_SECONDS", 0.05)
    with pytest.raises(StageFailed, match="is starting"):
        run.commands.execute(ListOperators())


@pytest.mark.parametrize(("error", "state"), [(None, State.STOPPED), (ValueError("x"), State.FAILED)])
def test_the_end_of_a_run_answers_waiting_commands(spec, error, state):
    """This includes an end with an unexpected error."""
    run = Run(spec)
    assert not run.commands.ended(type(error), error, None)
    assert run.commands.state.now.state is state


def test_a_pause_while_the_task_starts_opens_no_source(spec, monkeypatch):
    """It is paused as soon as its session is open, and resumes with its first attempt."""
    run = Run(spec, stopped)
    run.stop.pause()
    threading.Timer(0.05, run.stop.resume).start()
    assert run.end(monkeypatch)
    assert run.reported == [State.PAUSED, State.RUNNING]
    assert run.attempts == []


def test_a_stop_while_the_task_starts_opens_no_source(spec, monkeypatch):
    """The run ends in an orderly way."""
    run = Run(spec, stopped)
    run.stop.request()
    assert run.end(monkeypatch)
    assert len(run.attempts) == 1
