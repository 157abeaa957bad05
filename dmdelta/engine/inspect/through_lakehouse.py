"""The commands to a task through dm_meta: from another machine, or while the task does not run.

Each imports only what it needs: all of it takes half a second.
"""

from typing import TYPE_CHECKING, Any

from dmdelta.config import TaskSpec
from dmdelta.engine.control.protocol import (
    ChangeState,
    Command,
    DecideOperator,
    ListLocks,
    ListOperators,
    ReadRelay,
    ReadStatus,
    ReadValidator,
    ShowCheckpoint,
    TakeSnapshot,
    Unlock,
    Update,
)
from dmdelta.engine.task.task import Task, open_metadata

if TYPE_CHECKING:
    from dmdelta.engine.task.overrides import Decided


def execute(spec: TaskSpec, command: Command) -> Any:
    """Execute a command. Returns a record, or a list of records.

    Raises:
        DmdeltaError: as the functions that it calls.
    """
    match command:
        case ChangeState():
            from dmdelta.engine.control.client import ask_task

            return ask_task(spec, command.command)
        case Update():
            from dmdelta.engine.control.client import update_task

            return update_task(spec, command.settings)
        case ReadStatus():
            from dmdelta.engine.inspect.stored_status import stored_status

            return stored_status(spec)
        case ReadRelay():
            from dmdelta.engine.relay.admin import relay_logs

            return relay_logs(spec)
        case _:
            return _execute(open_metadata(spec), command)


def _execute(task: Task, command: Command) -> Any:
    match command:
        case TakeSnapshot():
            from dmdelta.engine.snapshot.request import request_snapshot

            return request_snapshot(task, command.tables)
        case ListOperators():
            from dmdelta.engine.task.overrides import list_operators

            return list_operators(task)
        case DecideOperator():
            return [_decide(task, command)]
        case ListLocks():
            from dmdelta.engine.apply.shard_locks import list_locks

            return list_locks(task)
        case Unlock():
            from dmdelta.engine.apply.shard_locks import unlock
            from dmdelta.sharding import Action

            return unlock(task, command.lock, Action(command.action), command.owner)
        case ShowCheckpoint():
            from dmdelta.checkpoint import checkpoint_rows

            return checkpoint_rows(task.spark, task.lakehouse, task.spec.name)
        case ReadValidator():
            from dmdelta.engine.validation.admin import show_status

            return show_status(task)
    raise AssertionError(command)


def _decide(task: Task, command: DecideOperator) -> "Decided":
    from dmdelta.engine.control.client import ask_reload
    from dmdelta.engine.task.overrides import decide
    from dmdelta.model.position import Position
    from dmdelta.rules.operators import Verb

    verb = Verb(command.verb) if command.verb is not None else None
    decided = decide(task, command.source, Position.parse(command.position), verb, command.statements)
    ask_reload(task)
    return decided
