"""Sends commands to a running task from another process, and waits for the answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from dmdelta.config import TaskSpec
from dmdelta.engine.control.table import ControlTable, Request, State, TaskState, UpdateAck
from dmdelta.engine.task.live_settings import RunSettings
from dmdelta.engine.task.task import open_task
from dmdelta.errors import StageFailed

ANSWER_SECONDS = 60.0
"""Time for one poll, the end of a transaction and a last checkpoint."""
_POLL_SECONDS = 0.5
_ANSWERS = {
    Request.PAUSE: State.PAUSED,
    Request.RESUME: State.RUNNING,
    Request.STOP: State.STOPPED,
}
_ENDED = (State.STOPPED, State.FAILED)
_NEXT_RUN = "nothing is lost: the next `dmdelta run` reads the spec"
_Answered = TypeVar("_Answered")


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of a task after a command."""

    task: str
    state: State
    process: str


@dataclass(frozen=True, slots=True)
class Updated:
    """The settings in effect after an update.

    Attributes:
        process: host and process id of the run.
    """

    task: str
    process: str
    checkpoint_flush_interval: timedelta


def ask_task(spec: TaskSpec, request: Request) -> Answer:
    """Send a command and wait until the task has the requested state.

    Raises:
        StageFailed: it did not answer in time, or has failed.
        LakehouseError: the control table cannot be read or written.
    """
    task = open_task(spec, writing=False)
    table = ControlTable(task.spark, task.lakehouse, spec.name)
    before = table.last_reported()
    if before is not None and before.state is _ANSWERS[request]:
        return _answer(spec.name, before)
    table.ask(request)

    def answer() -> TaskState | None:
        reported = table.last_reported()
        return (
            reported
            if reported != before and reported and reported.state in (_ANSWERS[request], State.FAILED)
            else None
        )

    reported = _wait_for(answer)
    if reported is None:
        raise StageFailed(
            f"the task {spec.name} does not answer",
            hint="is it running? `dmdelta status` shows its last reported state. If another command that pauses "
            "the task (maintain, replay) is running, retry after it has finished",
        )
    return _answer(spec.name, reported)


def update_task(spec: TaskSpec) -> Updated:
    """Ask a running or paused task to apply the spec's live settings, and wait until it has.

    Raises:
        StageFailed: it is not running, did not answer in time, or its version has other settings.
        LakehouseError: the control table cannot be read or written.
    """
    task = open_task(spec, writing=False)
    table, wanted = ControlTable(task.spark, task.lakehouse, spec.name), RunSettings.of(spec)
    reported = table.last_reported()
    if reported is not None and reported.state in _ENDED:
        raise StageFailed(f"the task {spec.name} is not running: it has {reported.state.value}", hint=_NEXT_RUN)
    update = table.ask_update(wanted.to_json())
    taken = _wait_for(lambda: table.answered(update))
    if taken is None:
        raise StageFailed(f"the task {spec.name} does not answer", hint=f"is it running? {_NEXT_RUN}")
    return _updated(spec.name, wanted, taken)


def _updated(task: str, wanted: RunSettings, taken: UpdateAck) -> Updated:
    if taken.settings != wanted.to_json():
        hint = "restart the task: it runs another version of dmdelta, or another process updated it at the same time"
        raise StageFailed(f"the task {task} has other settings in effect: {taken.settings}", hint=hint)
    return Updated(task, taken.process, wanted.flush_interval)


def _wait_for(look: Callable[[], _Answered | None]) -> _Answered | None:
    """Poll `look` for ANSWER_SECONDS; None if it returned nothing."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        answer = look()
        if answer is not None:
            return answer
        time.sleep(_POLL_SECONDS)
    return None


def _answer(task: str, reported: TaskState) -> Answer:
    if reported.state is State.FAILED:
        raise StageFailed(f"the task {task} has failed: {reported.error}", hint=reported.hint or "see its log")
    return Answer(task, reported.state, reported.process)
