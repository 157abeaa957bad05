"""The table `dm_meta.<task>_control`: what other processes ask of a running task, and what it says of itself.

Rows are only ever added; the newest request and the newest state count. A run obeys requests that come after its begin.
The table is made by the first who has something to say: a task that just runs has not.
"""

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.engine.stop import StopRequest
from dmdelta.engine.task import Task
from dmdelta.errors import DmdeltaError, Retryable
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.metadata import create_metadata, metadata_frame, metadata_rows
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.source.connection import Retry

log = get_logger(__name__)
AUTO_RESUME = Retry(first=5.0, longest=300.0)
POLL_SECONDS = 3.0
"""How often a running task looks for a request."""

COLUMNS: dict[str, T.DataType] = {
    "id": T.StringType(),
    "at": T.TimestampType(),
    "process": T.StringType(),
    "request": T.StringType(),
    "state": T.StringType(),
    "error": T.StringType(),
    "hint": T.StringType(),
}


class Request(str, Enum):
    """What a running task can be asked for."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


class State(str, Enum):
    """What a task says of itself."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    RETRYING = "retrying"
    """It failed, and will go on by itself."""
    FAILED = "failed"


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


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and its id."""

    id: str
    request: Request


@dataclass(frozen=True, slots=True)
class Told:
    """A state.

    Attributes:
        process: host and process id of the run.
        error, hint: why it failed, and the next step.
    """

    state: State
    at: datetime
    process: str
    error: str | None
    hint: str | None


class ControlTable:
    """The control table of one task. Has a session of its own; one thread at a time."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str) -> None:
        self._spark = clone_session(spark)
        self._table = lakehouse.metadata(f"{task}_control")
        self._lakehouse = lakehouse
        self._task = task

    def ask(self, request: Request) -> None:
        """Write a request down.

        Raises:
            ForeignTable: the table there is not this task's.
            LakehouseError: the commit failed.
        """
        self._append({"request": request.value})

    def tell(self, state: State, error: DmdeltaError | None = None) -> None:
        """Write down what has become of the task.

        Raises:
            ForeignTable: the table there is not this task's.
            LakehouseError: the commit failed.
        """
        told = {"error": error.message, "hint": error.hint} if error is not None else {}
        self._append({"state": state.value, **told})

    def asked(self) -> Asked | None:
        """The newest request; None if there is none, or no table.

        Raises:
            LakehouseError: the table cannot be read.
        """
        row = self._newest("request")
        return None if row is None else Asked(row["id"], Request(row["request"]))

    def told(self) -> Told | None:
        """The newest state; None if there is none, or no table.

        Raises:
            LakehouseError: the table cannot be read.
        """
        row = self._newest("state")
        if row is None:
            return None
        return Told(State(row["state"]), row["at"].astimezone(timezone.utc), row["process"], row["error"], row["hint"])

    def _newest(self, column: str) -> T.Row | None:
        query = f"SELECT max_by(struct(*), at) AS newest FROM {self._table} WHERE {column} IS NOT NULL"
        rows = metadata_rows(self._spark, self._table, query)
        return rows[0]["newest"] if rows else None

    def _append(self, fields: dict[str, str | None]) -> None:
        process = f"{socket.gethostname()}:{os.getpid()}"
        row = {"id": uuid.uuid4().hex, "at": datetime.now(timezone.utc), "process": process, **fields}
        create_metadata(self._spark, self._lakehouse, self._table, COLUMNS, self._task)
        with wrapped(self._table, "appending to"):
            metadata_frame(self._spark, COLUMNS, [row]).writeTo(self._table).append()


@contextmanager
def obeying(task: Task, stop: StopRequest) -> Iterator[ControlTable]:
    """Pass what is asked for from now on to `stop`, in a thread, until the block ends; a table for the caller's words.

    An orderly end after a request, or after any other word, is told at the end.
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
                if newest is not None and newest != seen:
                    log.info("asked to", request=newest.request.value)
                    obey(newest.request, stop)
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
