"""Sends commands to a running task from another process, and waits for the answer."""

import time
from collections.abc import Callable
from typing import TypeVar

from dmdelta.config import TaskSpec
from dmdelta.engine.control.protocol import ChangeState
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.control.state import (
    ANSWER_SECONDS,
    QUIET_STATES,
    TARGET_STATES,
    Answer,
    Request,
    State,
    Updated,
    failed,
    updated,
)
from dmdelta.engine.control.table import ControlTable, TaskState
from dmdelta.engine.task.task import Task, open_metadata
from dmdelta.errors import StageFailed

_POLL_SECONDS = 0.5
_ENDED = (State.STOPPED, State.FAILED)
_NEXT_RUN = "nothing is lost: the next `dmdelta run` reads the spec"
_Answered = TypeVar("_Answered")


def change_state(spec: TaskSpec, request: Request) -> None:
    """Send a command through the task's socket, or through dm_meta, and wait until the task has the requested state.

    Raises:
        StageFailed, LakehouseError: as `ask_task`.
    """
    if ask_running(spec, ChangeState(command=request)) is None:
        ask_task(spec, request)


def withdraw_pause(spec: TaskSpec) -> None:
    """Cancel a pause that may not have taken effect yet. Does not wait for it through dm_meta.

    Raises:
        StageFailed: the task has failed, or does not answer. LakehouseError: the control table cannot be written.
    """
    if ask_running(spec, ChangeState(command=Request.RESUME)) is None:
        # Not `ask_task`: it sends nothing to a task that still reports that it is running.
        task = open_metadata(spec)
        ControlTable(task.spark, task.lakehouse, spec.name).ask(Request.RESUME)


def ask_task(spec: TaskSpec, request: Request) -> Answer:
    """Send a command through dm_meta and wait until the task has the requested state.

    Raises:
        StageFailed: it did not answer in time, or has failed.
        LakehouseError: the control table cannot be read or written.
    """
    task = open_metadata(spec)
    table = ControlTable(task.spark, task.lakehouse, spec.name)
    before = table.last_reported()
    if before is not None and before.state is TARGET_STATES[request]:
        return _answer(spec.name, before)
    table.ask(request)

    def answer() -> TaskState | None:
        reported = table.last_reported()
        return (
            reported
            if reported != before and reported and reported.state in (TARGET_STATES[request], State.FAILED)
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


def ask_reload(task: Task) -> None:
    """Let a run read the operator overrides again, through dm_meta.

    Raises:
        LakehouseError: the control table cannot be written.
    """
    ControlTable(task.spark, task.lakehouse, task.spec.name).ask_reload()


def update_task(spec: TaskSpec, settings: str) -> Updated:
    """Ask a running or paused task to apply settings (`RunSettings.to_json`), and wait until it has.

    Raises:
        StageFailed: it is not running, did not answer in time, or its version has other settings.
        LakehouseError: the control table cannot be read or written.
    """
    task = open_metadata(spec)
    table = ControlTable(task.spark, task.lakehouse, spec.name)
    reported = table.last_reported()
    if reported is not None and reported.state in _ENDED:
        raise StageFailed(f"the task {spec.name} is not running: it has {reported.state.value}", hint=_NEXT_RUN)
    update = table.ask_update(settings)
    taken = _wait_for(lambda: table.answered(update))
    if taken is None:
        raise StageFailed(f"the task {spec.name} does not answer", hint=f"is it running? {_NEXT_RUN}")
    return updated(spec.name, settings, taken.settings, taken.process)


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
        raise failed(task, reported.error, reported.hint)
    return Answer(task, reported.state, reported.process, reported.error if reported.state in QUIET_STATES else None)
