"""Asking a running task from another process, and waiting for its answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from dmdelta.config import TaskSpec
from dmdelta.engine.control_table import ControlTable, Request, State, Taken, Told
from dmdelta.engine.live import LiveSettings
from dmdelta.engine.task import open_task
from dmdelta.errors import StageFailed

ANSWER_SECONDS = 60.0
"""A look for requests, a transaction's end, a last checkpoint."""
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
    """What a task said after it was asked."""

    task: str
    state: State
    process: str


@dataclass(frozen=True, slots=True)
class Updated:
    """What a task has in force after an update.

    Attributes:
        process: host and process id of the run.
    """

    task: str
    process: str
    checkpoint_flush_interval: timedelta


def ask_task(spec: TaskSpec, request: Request) -> Answer:
    """Ask, and wait until the task is what it was asked to be.

    Raises:
        StageFailed: it did not answer in time, or has failed.
        LakehouseError: the control table cannot be read or written.
    """
    task = open_task(spec, writing=False)
    table = ControlTable(task.spark, task.lakehouse, spec.name)
    before = table.told()
    if before is not None and before.state is _ANSWERS[request]:
        return _answer(spec.name, before)
    table.ask(request)

    def answer() -> Told | None:
        told = table.told()
        return told if told != before and told and told.state in (_ANSWERS[request], State.FAILED) else None

    told = _wait_for(answer)
    if told is None:
        raise StageFailed(
            f"the task {spec.name} does not answer",
            hint="is it running? `dmdelta status` tells what it last did. If another command that makes the task stand "
            "still (maintain, replay) is at work, run this one after it",
        )
    return _answer(spec.name, told)


def update_task(spec: TaskSpec) -> Updated:
    """Ask a running or paused task to take over the spec's live settings, and wait until it has.

    Raises:
        StageFailed: it does not run, did not answer in time, or is of a version that knows other settings.
        LakehouseError: the control table cannot be read or written.
    """
    task = open_task(spec, writing=False)
    table, wanted = ControlTable(task.spark, task.lakehouse, spec.name), LiveSettings.of(spec)
    told = table.told()
    if told is not None and told.state in _ENDED:
        raise StageFailed(f"the task {spec.name} does not run: it has {told.state.value}", hint=_NEXT_RUN)
    update = table.ask_update(wanted.to_json())
    taken = _wait_for(lambda: table.answered(update))
    if taken is None:
        raise StageFailed(f"the task {spec.name} does not answer", hint=f"is it running? {_NEXT_RUN}")
    return _updated(spec.name, wanted, taken)


def _updated(task: str, wanted: LiveSettings, taken: Taken) -> Updated:
    if taken.settings != wanted.to_json():
        hint = "stop it and run it again: it is of another version of dmdelta, or somebody else updated it, too"
        raise StageFailed(f"the task {task} has other settings in force: {taken.settings}", hint=hint)
    return Updated(task, taken.process, wanted.flush_interval)


def _wait_for(look: Callable[[], _Answered | None]) -> _Answered | None:
    """What `look` finds within ANSWER_SECONDS, None if nothing."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(_POLL_SECONDS)
    return None


def _answer(task: str, told: Told) -> Answer:
    if told.state is State.FAILED:
        raise StageFailed(f"the task {task} has failed: {told.error}", hint=told.hint or "see its log")
    return Answer(task, told.state, told.process)
