"""Executes commands of other processes in a running task, and decides what follows a failure."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dmdelta.engine.control.background import in_background
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.state import Reason, Request, State
from dmdelta.engine.control.table import ControlTable, PendingCommands
from dmdelta.engine.task.task import Task
from dmdelta.errors import CommitConflict, DmdeltaError, HeldByCommand, Retryable
from dmdelta.logging import get_logger
from dmdelta.model.retry import Retry

log = get_logger(__name__)
AUTO_RESUME = Retry(first=5.0, longest=300.0)
POLL_SECONDS = 3.0
"""How often a running task polls for commands."""
CONFLICT_RETRIES = 3
"""How often a run that ends once it has caught up retries after commit conflicts in a row."""
POLL_RETRIES = 5
"""How many polls in a row may fail for a transient reason: commands wait, but a paused task has no other retry."""


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The state after a failure; the task retries automatically after `delay` seconds; None: it ends."""

    state: State
    delay: float | None = None


def plan_after_failure(error: DmdeltaError, failures: int, *, ends: bool, has_begun: bool = False) -> RetryDecision:
    """Decide what follows a failure.

    Args:
        failures: number of consecutive failures, including this one.
        ends: the run ends once it has caught up; its caller waits for the result. It retries only commit conflicts, and
            a few times: they pass by themselves, while an unreachable server or target may stay so.
        has_begun: the run has followed its sources before: a command that holds them found it paused or retrying.
    """
    if isinstance(error, HeldByCommand) and has_begun:
        return RetryDecision(State.RETRYING, AUTO_RESUME.delay(1))
    passes = isinstance(error, CommitConflict) and failures <= CONFLICT_RETRIES
    if not (passes if ends else isinstance(error, Retryable)):
        return RetryDecision(State.FAILED)
    return RetryDecision(State.RETRYING, AUTO_RESUME.delay(failures))


@contextmanager
def serve_commands(
    task: Task, stop: StopRequest, reload: Callable[[], None], apart: Callable[[], Reason | None]
) -> Iterator[ControlTable]:
    """Execute commands of dm_meta in a thread until the block ends; yields a table for the caller's own state reports.

    Commands go to `stop`, settings to `task.live_settings`. If there were commands or state reports, a normal end is
    reported as STOPPED.

    Args:
        reload: lets the run read the operator overrides again.
        apart: which tables have not reached the position of the others at the end.
    """
    table, polled = (ControlTable(task.spark, task.lakehouse, task.spec.name) for _ in range(2))
    known, reported = table.asked(), table.last_reported()
    if reported is not None and reported.state is not State.RUNNING:
        table.publish(State.RUNNING)
    listener = Listener(task, stop, reload, polled, known)
    with in_background(listener.poll, "control"):
        yield table
    last = table.last_reported()
    if last is not None or table.asked() != known:
        table.publish(State.STOPPED, apart())


@dataclass(slots=True)
class Listener:
    """Executes commands of dm_meta, in a thread of its own.

    Attributes:
        reload: lets the run read the operator overrides again.
        polled: a table of its own.
        handled: the commands that were executed.
    """

    task: Task
    stop: StopRequest
    reload: Callable[[], None]
    polled: ControlTable
    handled: PendingCommands

    def poll(self, over: threading.Event) -> None:
        """Poll until `over`; a failure stops the run, which raises it."""
        failures = 0
        while not over.wait(POLL_SECONDS):
            try:
                self._execute(self.polled.asked())
                failures = 0
            except Exception as error:  # noqa: BLE001 - the run raises it
                failures += 1
                if not isinstance(error, Retryable) or failures > POLL_RETRIES:
                    self.stop.fail(error)
                    return
                log.warning("commands are not polled, retrying automatically", why=str(error))

    def _execute(self, newest: PendingCommands) -> None:
        handled, self.handled = self.handled, replace(newest, update=self.handled.update)
        if newest.request is not None and newest.request != handled.request:
            log.info("command received", request=newest.request.request.value)
            obey(newest.request.request, self.stop)
        if newest.reload != handled.reload:
            log.info("command received", request="reload")
            self.reload()
        # Last, because its commit may fail: only the update is then repeated.
        if newest.update is not None and newest.update != handled.update:
            self.polled.answer(newest.update, take_over(self.task, newest.update.settings))
        self.handled = newest


def obey(request: Request, stop: StopRequest) -> None:
    """Execute a command."""
    {Request.PAUSE: stop.pause, Request.RESUME: stop.resume, Request.STOP: stop.request}[request]()


def take_over(task: Task, settings: str) -> str:
    """Apply settings (`RunSettings.to_json`) from now on; returns the settings in effect."""
    task.live_settings.settings = task.live_settings.settings.changed_by(settings)
    taken = task.live_settings.settings.to_json()
    log.info("settings applied", settings=taken)
    return taken
