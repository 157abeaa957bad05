"""Commands to a task, and what follows a failure."""

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from dmdelta.engine.control import listener as listener_module
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.listener import (
    AUTO_RESUME,
    CONFLICT_RETRIES,
    POLL_RETRIES,
    Listener,
    RetryDecision,
    obey,
    plan_after_failure,
)
from dmdelta.engine.control.state import Request, State
from dmdelta.engine.control.table import Command, PendingCommands, Update
from dmdelta.engine.task.live_settings import LiveSettings, RunSettings
from dmdelta.errors import (
    CommitConflict,
    ConfigError,
    DmdeltaError,
    Fenced,
    HeldByCommand,
    LakehouseError,
    SourceUnavailable,
)


def test_a_pause_can_be_resumed_and_a_stop_cannot() -> None:
    """Requests in any order: both end the loops, and only a pause can be resumed."""
    stop = StopRequest()
    obey(Request.RESUME, stop)
    assert not stop.requested
    obey(Request.PAUSE, stop)
    assert (stop.requested, stop.is_pause) == (True, True)
    obey(Request.RESUME, stop)
    assert not stop.requested
    assert stop.wait_for_resume()
    obey(Request.PAUSE, stop)
    obey(Request.STOP, stop)
    assert (stop.requested, stop.is_pause) == (True, False)
    obey(Request.RESUME, stop)
    obey(Request.PAUSE, stop)
    assert (stop.requested, stop.is_pause) == (True, False)
    assert not stop.wait_for_resume()


def test_a_stop_ends_the_wait_for_a_resume() -> None:
    """A paused task can be stopped."""
    stop = StopRequest()
    stop.pause()
    threading.Timer(0.05, stop.request).start()
    assert not stop.wait_for_resume()


def test_a_transient_failure_is_retried_with_back_off() -> None:
    """Only retryable errors are retried; a run that ends once it has caught up does not wait for a server."""
    transient, permanent = SourceUnavailable("gone", hint="wait"), ConfigError("wrong", hint="fix it")
    first, tenth = (plan_after_failure(transient, failures, ends=False) for failures in (1, 10))
    assert first.state is tenth.state is State.RETRYING
    assert first.delay is not None
    assert tenth.delay is not None
    assert first.delay <= AUTO_RESUME.first < tenth.delay <= AUTO_RESUME.longest
    assert plan_after_failure(permanent, 1, ends=False).delay is None
    assert plan_after_failure(transient, 1, ends=True).delay is None


def test_a_run_that_ends_by_itself_retries_commit_conflicts_a_few_times() -> None:
    """Another writer's commit passes by itself; a conflict that persists ends the run."""
    conflict = CommitConflict("another writer", hint="run again")
    for failures in range(1, CONFLICT_RETRIES + 1):
        assert plan_after_failure(conflict, failures, ends=True).state is State.RETRYING
    assert plan_after_failure(conflict, CONFLICT_RETRIES + 1, ends=True) == RetryDecision(State.FAILED)
    assert plan_after_failure(conflict, CONFLICT_RETRIES + 1, ends=False).state is State.RETRYING


@pytest.mark.parametrize("ends", [False, True])
def test_a_run_that_is_resumed_while_a_command_works_waits_for_it(ends: bool) -> None:  # noqa: FBT001 - a parameter
    """It asks again after the same time; a run that starts then ends, and so does one beside another run."""
    held = HeldByCommand("another command is working", hint="retry")
    for failures in (1, 10):
        after = plan_after_failure(held, failures, ends=ends, has_begun=True)
        assert after.state is State.RETRYING
        assert after.delay is not None
        assert after.delay <= AUTO_RESUME.first
    assert plan_after_failure(held, 1, ends=ends).delay is None
    assert plan_after_failure(Fenced("another relay", hint="stop it"), 1, ends=ends, has_begun=True).delay is None


class Commands:
    """The commands in a control table, which refuses the first answers; `over` is set once they are answered."""

    def __init__(self, pending: PendingCommands, *errors: DmdeltaError) -> None:
        self.pending, self.errors, self.over = pending, list(errors), threading.Event()

    def asked(self) -> PendingCommands:
        return self.pending

    def answer(self, *_: object) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.over.set()


def polled(monkeypatch: pytest.MonkeyPatch, *errors: DmdeltaError) -> tuple[Commands, StopRequest, list[str]]:
    """Poll a table with a command of each kind, whose answers fail with these errors first."""
    monkeypatch.setattr(listener_module, "POLL_SECONDS", 0.0)
    settings = LiveSettings(RunSettings(timedelta(seconds=30)))
    update = Update("u", settings.settings.to_json())
    commands, reloads = Commands(PendingCommands(Command("c", Request.PAUSE), update, "r"), *errors), list[str]()
    stop, task = StopRequest(), SimpleNamespace(live_settings=settings)
    Listener(task, stop, lambda: reloads.append("r"), commands, PendingCommands()).poll(commands.over)
    return commands, stop, reloads


def test_transient_errors_of_the_control_table_do_not_end_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is answered later, and the others are executed once."""
    commands, stop, reloads = polled(monkeypatch, *[CommitConflict("conflict")] * POLL_RETRIES)
    assert commands.over.is_set()
    assert (stop.failure, stop.is_pause, reloads) == (None, True, ["r"])


@pytest.mark.parametrize("errors", [[CommitConflict("conflict")] * (POLL_RETRIES + 1), [LakehouseError("denied")]])
def test_other_errors_of_the_control_table_end_it(monkeypatch: pytest.MonkeyPatch, errors: list[DmdeltaError]) -> None:
    """The run raises the error."""
    commands, stop, _ = polled(monkeypatch, *errors)
    assert stop.failure is errors[-1]
    assert not commands.over.is_set()
