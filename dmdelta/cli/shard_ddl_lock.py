"""`dmdelta shard-ddl-lock`: shard DDL that waits for other shards."""

from enum import Enum
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ListLocks, Unlock
from dmdelta.engine.inspect.operate import operate

app = typer.Typer(no_args_is_help=True, help="Shard DDL that waits for other shards.", rich_markup_mode=None)


class Choice(str, Enum):
    """What to do with a statement that no longer waits."""

    EXEC = "exec"
    SKIP = "skip"


LockId = Annotated[str, typer.Argument(metavar="LOCK", help="The lock, as shown by `list`: TASK-`SCHEMA`.`TABLE`.")]
Act = Annotated[
    Choice, typer.Option("--action", help="exec: silver and the sink apply the statement now. skip: silver omits it.")
]
Owner = Annotated[
    str | None, typer.Option("--owner", metavar="SHARD", help="The shard whose statement counts, if they differ.")
]


@app.callback()
def group() -> None:
    """Shard DDL that waits for the other shards of its merged table."""


@app.command("list")
def list_(spec: Spec, json: Json = False) -> None:
    """List the unresolved locks of silver and of the sink (`side`), as last reported by the task."""
    render.rows(operate(load_spec(spec), ListLocks()), as_json=json, empty="no locks")


@app.command("unlock")
def unlock(spec: Spec, lock: LockId, action: Act = Choice.EXEC, owner: Owner = None, json: Json = False) -> None:
    """Stop waiting for the remaining shards; a running task applies this at once."""
    command = Unlock(lock=lock, action=action.value, owner=owner)
    render.rows(operate(load_spec(spec), command), as_json=json, empty="")
