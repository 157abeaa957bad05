"""`dmdelta checkpoint`: the flushed points."""

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec

app = typer.Typer(no_args_is_help=True, help="The flushed checkpoint.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """The flushed checkpoint."""


@app.command("show")
def show(spec: Spec, json: Json = False) -> None:
    """Global, table and exit points as they were last flushed."""
    task = load_spec(spec)
    from dmdelta.engine.look import checkpoints

    render.rows(checkpoints(task), as_json=json, empty="no checkpoint yet")
