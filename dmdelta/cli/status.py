"""`dmdelta status`: the task's positions and state."""

import time
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec

WATCH_SECONDS = 5.0


def status(
    spec: Spec,
    json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every five seconds, until Ctrl-C.")] = False,
) -> None:
    """Show positions from the server to silver, by source and table; whether the task is paused, or why it failed."""
    task = load_spec(spec)
    from dmdelta.engine.inspect.status import task_status

    render.record(task_status(task), as_json=json)
    while watch:
        time.sleep(WATCH_SECONDS)
        newest = task_status(task)
        render.console().clear()
        render.record(newest, as_json=json)
