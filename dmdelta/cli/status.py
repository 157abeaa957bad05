"""`dmdelta status`: the state, lag and positions of a task."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import TaskSpec, load_spec
from dmdelta.engine.inspect.status import read_status

if TYPE_CHECKING:
    from dmdelta.engine.telemetry.task_status import TaskStatus

WATCH_SECONDS = 1.0
"""For a running task; a task that does not run is read from the lakehouse, as often as that takes."""


def status(
    spec: Spec,
    tables: Annotated[
        bool, typer.Option("--tables", help="List every table, not only those that need attention.")
    ] = False,
    json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second, until Ctrl-C.")] = False,
) -> None:
    """Show the state, lag, rate and positions of each source, and the tables that need attention.

    The JSON document follows `schemas/status.schema.json`; it always lists every table.
    """
    task = load_spec(spec)
    if watch:
        _watch(task, all_tables=tables, as_json=json)
    else:
        _show(read_status(task), all_tables=tables, as_json=json)


def _show(found: "TaskStatus", *, all_tables: bool, as_json: bool) -> None:
    from dmdelta.cli.status_view import status_view, view_console

    if as_json:
        render.print_json(found.model_dump(mode="json"))
    else:
        view_console().print(status_view(found, all_tables=all_tables))


def _watch(task: TaskSpec, *, all_tables: bool, as_json: bool) -> None:
    """Show the status every second: in place on a terminal, one after the other elsewhere."""
    from dmdelta.cli.status_view import status_view, view_console

    console = view_console()
    if as_json or not console.is_terminal:
        while True:
            _show(read_status(task), all_tables=all_tables, as_json=as_json)
            time.sleep(WATCH_SECONDS)
    from rich.live import Live

    first = status_view(read_status(task), all_tables=all_tables)
    with Live(first, console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            time.sleep(WATCH_SECONDS)
            live.update(status_view(read_status(task), all_tables=all_tables), refresh=True)
