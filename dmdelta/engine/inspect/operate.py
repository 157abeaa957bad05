"""Executes an operator's command: in the running task, or through dm_meta. The results have the same form."""

from typing import Any

from dmdelta.config import TaskSpec
from dmdelta.engine.control.protocol import Command
from dmdelta.engine.control.socket_client import ask_running


def operate(spec: TaskSpec, command: Command) -> Any:
    """Execute a command.

    A task that runs on this machine executes it at once. Otherwise it is recorded in dm_meta, for a task that runs on
    another machine, or for the next run; or its result is read from there.

    Returns:
        A record, or a list of records: the engine's, or the same as plain JSON values.

    Raises:
        DmdeltaError: the command had no effect, or the task did not report its effect in time.
    """
    reply = ask_running(spec, command)
    if reply is not None:
        return reply.result
    from dmdelta.engine.inspect.through_lakehouse import execute  # noqa: PLC0415 - imports Spark, which takes seconds

    return execute(spec, command)
