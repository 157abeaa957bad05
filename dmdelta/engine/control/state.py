"""The requests to a running task, and its state in memory."""

import json
import os
import socket
import threading
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

from dmdelta.errors import DmdeltaError, StageFailed


class Request(str, Enum):
    """The commands that change the state of a running task."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


class State(str, Enum):
    """The states that a task reports."""

    STARTING = "starting"
    """It has not opened its sources yet. Only the control socket reports this state."""
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    RETRYING = "retrying"
    """It failed, and retries automatically."""
    FAILED = "failed"


ANSWER_SECONDS = 60.0
"""Time for one poll, the end of a transaction and a last checkpoint."""
TARGET_STATES = {
    Request.PAUSE: State.PAUSED,
    Request.RESUME: State.RUNNING,
    Request.STOP: State.STOPPED,
}
"""The state that each request leads to."""
QUIET_STATES = (State.PAUSED, State.STOPPED)
"""The states in which no table changes."""


@dataclass(frozen=True, slots=True)
class Reason:
    """An explanation of a state, and the next step."""

    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of a task after a command.

    Attributes:
        note: the tables that are not at the position of the others after a pause or stop; None: there are none.
    """

    task: str
    state: State
    process: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Updated:
    """The settings in effect after an update.

    Attributes:
        process: host and process id of the run.
    """

    task: str
    process: str
    checkpoint_flush_interval: timedelta


@dataclass(frozen=True, slots=True)
class ReportedState:
    """
    Attributes:
        error, hint: why the task failed, why a table is stopped, or which tables are not at the position of the others
            after a pause or stop; and the next step.
    """

    state: State
    at: datetime
    error: str | None = None
    hint: str | None = None


def process_name() -> str:
    """Host and process id of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class RunState:
    """The state of a run in memory. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._now = ReportedState(State.STARTING, datetime.now(timezone.utc))

    @property
    def now(self) -> ReportedState:
        return self._now

    def publish(self, state: State, error: DmdeltaError | Reason | None = None) -> None:
        """Enter a state."""
        with self._changed:
            at = self._now.at if self._now.state is state else datetime.now(timezone.utc)
            failure = (error.message, error.hint) if error is not None else (None, None)
            self._now = ReportedState(state, at, *failure)
            self._changed.notify_all()

    def wait_for(self, states: Collection[State], seconds: float) -> ReportedState | None:
        """Wait until the run is in one of the states; None after a timeout."""
        with self._changed:
            reached = self._changed.wait_for(lambda: self._now.state in states, seconds)
            return self._now if reached else None


def updated(task: str, wanted: str, taken: str, process: str) -> Updated:
    """The answer to an update; `wanted` and `taken` are `RunSettings.to_json`.

    Raises:
        StageFailed: the task has other settings in effect.
    """
    if taken != wanted:
        hint = "restart the task: it runs another version of dmdelta, or another process updated it at the same time"
        raise StageFailed(f"the task {task} has other settings in effect: {taken}", hint=hint)
    return Updated(task, process, timedelta(seconds=json.loads(taken)["checkpoint-flush-interval"]))


def failed(task: str, error: str | None, hint: str | None) -> StageFailed:
    """The error of a command to a task that has failed."""
    return StageFailed(f"the task {task} has failed: {error}", hint=hint or "see its log")
