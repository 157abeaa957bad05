"""The commands to a task through dm_meta: from another machine, or while the task does not run."""

from typing import Any

from dmdelta.checkpoint import checkpoint_rows
from dmdelta.config import TaskSpec
from dmdelta.engine.apply.shard_locks import list_locks, unlock
from dmdelta.engine.control.client import ask_reload, ask_task, update_task
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
from dmdelta.engine.inspect.stored_status import stored_status
from dmdelta.engine.relay.admin import relay_logs
from dmdelta.engine.snapshot.request import request_snapshot
from dmdelta.engine.task.overrides import Decided, decide, list_operators
from dmdelta.engine.task.task import Task, open_metadata
from dmdelta.engine.validation.admin import show_status
from dmdelta.model.position import Position
from dmdelta.rules.operators import Verb
from dmdelta.sharding import Action


def execute(spec: TaskSpec, command: Command) -> Any:
    """Execute a command. Returns a record, or a list of records.

    Raises:
        DmdeltaError: as the functions that it calls.
    """
    match command:
        case ChangeState():
            return ask_task(spec, command.command)
        case Update():
            return update_task(spec, command.settings)
        case ReadStatus():
            return stored_status(spec)
        case ReadRelay():
            return relay_logs(spec)
        case _:
            return _execute(open_metadata(spec), command)


def _execute(task: Task, command: Command) -> Any:
    match command:
        case TakeSnapshot():
            return request_snapshot(task, command.tables)
        case ListOperators():
            return list_operators(task)
        case DecideOperator():
            return [_decide(task, command)]
        case ListLocks():
            return list_locks(task)
        case Unlock():
            return unlock(task, command.lock, Action(command.action), command.owner)
        case ShowCheckpoint():
            return checkpoint_rows(task.spark, task.lakehouse, task.spec.name)
        case ReadValidator():
            return show_status(task)
    raise AssertionError(command)


def _decide(task: Task, command: DecideOperator) -> Decided:
    verb = Verb(command.verb) if command.verb is not None else None
    decided = decide(task, command.source, Position.parse(command.position), verb, command.statements)
    ask_reload(task)
    return decided
