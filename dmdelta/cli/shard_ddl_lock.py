"""`dmdelta shard-ddl-lock`: statements of shards that wait for the others."""

from enum import Enum
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec

app = typer.Typer(no_args_is_help=True, help="Statements of shards that wait for others.", rich_markup_mode=None)


class Choice(str, Enum):
    """What is done with a statement that nobody waits for any more."""

    EXEC = "exec"
    SKIP = "skip"


LockId = Annotated[str, typer.Argument(metavar="LOCK", help="The lock, as `list` shows it: TASK-`SCHEMA`.`TABLE`.")]
Act = Annotated[
    Choice, typer.Option("--action", help="exec: silver follows the statement now. skip: silver goes without it.")
]
Owner = Annotated[
    str | None, typer.Option("--owner", metavar="SHARD", help="Whose statement, where shards wait with different ones.")
]


@app.callback()
def group() -> None:
    """Statements of shards that wait for the others of their merged table."""


@app.command("list")
def list_(spec: Spec, json: Json = False) -> None:
    """The locks that are not resolved, as the task's run last told them."""
    task = load_spec(spec)
    from dmdelta.engine.shard_locks import list_locks

    render.rows(list_locks(task), as_json=json, empty="no locks")


@app.command("unlock")
def unlock(spec: Spec, lock: LockId, action: Act = Choice.EXEC, owner: Owner = None, json: Json = False) -> None:
    """Wait no longer for the shards that remain; a running task takes it over within seconds."""
    task = load_spec(spec)
    from dmdelta.engine.shard_locks import unlock
    from dmdelta.sharding import Action

    render.rows([unlock(task, lock, Action(action.value), owner)], as_json=json, empty="")
