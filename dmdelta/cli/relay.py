"""`dmdelta relay`: the relay log on disk."""

from datetime import timedelta
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec, span
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import ReadRelay
from dmdelta.engine.inspect.operate import operate

app = typer.Typer(no_args_is_help=True, help="The relay log on disk.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """The relay log on disk."""


@app.command("status")
def status(spec: Spec, json: Json = False) -> None:
    """Show each relay folder: its range of the log, how much of it has landed, and the free space."""
    render.rows(operate(load_spec(spec), ReadRelay()), as_json=json, empty="no relay log yet")


@app.command("purge")
def purge(
    spec: Spec,
    older_than: Annotated[
        timedelta | None,
        typer.Option(parser=span, metavar="SPAN", help="Only segments older than this, for example 30m or 2h."),
    ] = None,
    json: Json = False,
) -> None:
    """Remove landed segments, regardless of the spec's retention. The task may run meanwhile."""
    task = load_spec(spec)
    from dmdelta.engine.relay.admin import purge_relay

    render.rows(purge_relay(task, older_than or timedelta(0)), as_json=json, empty="no relay log yet")
