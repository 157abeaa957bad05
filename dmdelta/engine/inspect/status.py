"""The status of a task, from the running task or as recorded. Imports Spark only for a task that does not run here."""

from dmdelta.config import TaskSpec
from dmdelta.engine.control.protocol import ReadStatus
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.telemetry.task_status import TaskStatus


def read_status(spec: TaskSpec) -> TaskStatus:
    """The status of a task: its own answer if it runs on this machine, else what it has recorded.

    Raises:
        StageFailed: the running task does not answer.
        LakehouseError: a table cannot be read.
    """
    reply = ask_running(spec, ReadStatus())
    if reply is not None:
        return TaskStatus.model_validate(reply.result)
    from dmdelta.engine.inspect.stored_status import stored_status  # noqa: PLC0415 - imports Spark, which takes seconds

    return stored_status(spec)
