"""Asking a running task from another process, and waiting for its answer."""

import time
from dataclasses import dataclass

from dmdelta.config import TaskSpec
from dmdelta.engine.control import ControlTable, Request, State, Told
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task said after it was asked."""

    task: str
    state: State
    process: str


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
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        told = table.told()
        if told is not None and told != before and told.state in (_ANSWERS[request], State.FAILED):
            return _answer(spec.name, told)
        time.sleep(_POLL_SECONDS)
    raise StageFailed(
        f"the task {spec.name} does not answer",
        hint="is it running? `dmdelta status` tells what it last did; a request is for a run that is under way",
    )


def _answer(task: str, told: Told) -> Answer:
    if told.state is State.FAILED:
        raise StageFailed(f"the task {task} has failed: {told.error}", hint=told.hint or "see its log")
    return Answer(task, told.state, told.process)
