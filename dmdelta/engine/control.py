"""Obeying what other processes ask of a running task, and what follows a failure."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dmdelta.engine.control_table import ControlTable, Request, State
from dmdelta.engine.stop import StopRequest
from dmdelta.engine.task import Task
from dmdelta.errors import DmdeltaError, Retryable
from dmdelta.logging import get_logger
from dmdelta.model.retry import Retry

log = get_logger(__name__)
AUTO_RESUME = Retry(first=5.0, longest=300.0)
POLL_SECONDS = 3.0
"""How often a running task looks for a request."""


@dataclass(frozen=True, slots=True)
class AfterFailure:
    """What becomes of a task that failed; `delay` seconds later it goes on by itself, None: it ends."""

    state: State
    delay: float | None = None


def plan_after_failure(error: DmdeltaError, failures: int, *, ends: bool) -> AfterFailure:
    """Decide.

    Args:
        failures: how many there were in a row, this one included.
        ends: the run is to end with what the sources have; whoever waits for that wants to know.
    """
    if ends or not isinstance(error, Retryable):
        return AfterFailure(State.FAILED)
    return AfterFailure(State.RETRYING, AUTO_RESUME.delay(failures))


@contextmanager
def obeying(task: Task, stop: StopRequest) -> Iterator[ControlTable]:
    """Do what is asked for from now on, in a thread, until the block ends; a table for the caller's words.

    Requests go to `stop`, settings to `task.in_force`. An orderly end after a request, or after any other word, is told
    at the end.
    """
    table, polled = (ControlTable(task.spark, task.lakehouse, task.spec.name) for _ in range(2))
    known, told = table.asked(), table.told()
    if told is not None and told.state is not State.RUNNING:
        table.tell(State.RUNNING)
    over = threading.Event()

    def poll() -> None:
        seen = known
        try:
            while not over.wait(POLL_SECONDS):
                newest = polled.asked()
                if newest.request is not None and newest.request != seen.request:
                    log.info("asked to", request=newest.request.request.value)
                    obey(newest.request.request, stop)
                if newest.update is not None and newest.update != seen.update:
                    polled.answer(newest.update, take_over(task, newest.update.settings))
                seen = newest
        except Exception as error:  # noqa: BLE001 - the run raises it
            stop.fail(error)

    thread = threading.Thread(target=poll, name="control", daemon=True)
    thread.start()
    try:
        yield table
    finally:
        over.set()
        thread.join()
    last = table.told()
    if last is not None or table.asked() != known:
        table.tell(State.STOPPED)


def obey(request: Request, stop: StopRequest) -> None:
    """Do what was asked."""
    {Request.PAUSE: stop.pause, Request.RESUME: stop.resume, Request.STOP: stop.request}[request]()


def take_over(task: Task, settings: str) -> str:
    """Put settings (`LiveSettings.to_json`) in force, for this turn and those to come; what is in force then."""
    task.in_force.settings = task.in_force.settings.changed_by(settings)
    taken = task.in_force.settings.to_json()
    log.info("settings taken over", settings=taken)
    return taken
