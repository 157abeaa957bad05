"""Sends commands to a task of this machine through its control socket. Imports neither Spark nor a driver."""

import os
import socket
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dmdelta.config import TaskSpec
from dmdelta.engine.control.protocol import AnswerLine, Command, request_line
from dmdelta.engine.control.socket_path import control_socket, peer_user
from dmdelta.errors import StageFailed

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 150.0
"""Longer than any wait of the task for a state: the task reports its own timeouts."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a command, as plain JSON values."""

    result: Any


def ask_running(spec: TaskSpec, command: Command) -> Reply | None:
    """Send a command to the task if it runs on this machine, and wait for the result.

    Returns:
        None if no process of this account serves the task's socket.

    Raises:
        DmdeltaError: the task's error; the command had no effect, unless the error says otherwise.
        StageFailed: the task does not answer, or ended before it answered.
    """
    connection = _connected(str(control_socket(spec)))
    if connection is None:
        return None
    with connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.sendall(request_line(command))
            with connection.makefile("rb") as answers:
                line = answers.readline()
        except OSError as error:
            raise StageFailed(
                f"the task {spec.name} does not answer: {error.strerror or error}", hint="see the log of the task"
            ) from error
    return _reply(spec.name, line)


def _connected(path: str) -> socket.socket | None:
    """A connection to a live server of this account, or of root; None if there is none, as after a kill."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_SECONDS)
    try:
        connection.connect(path)
        if peer_user(connection) in (None, 0, os.geteuid()) or os.geteuid() == 0:
            return connection
    except OSError:
        pass  # none, stale, or of another account: dm_meta answers instead
    connection.close()
    return None


def _reply(task: str, line: bytes) -> Reply:
    if not line.endswith(b"\n"):
        raise StageFailed(f"the task {task} ended before it answered", hint="see its log; `dmdelta status` shows why")
    try:
        answer = AnswerLine.model_validate_json(line)
    except ValidationError:
        raise StageFailed(
            f"the answer of the task {task} is invalid", hint="use the `dmdelta` of the version that runs the task"
        ) from None
    if answer.error is not None:
        raise answer.error.restored()
    return Reply(answer.result)
