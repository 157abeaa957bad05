"""`dmdelta snapshot`: reads tables from the source again."""

from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec

Tables = Annotated[list[str], typer.Option("--table", metavar="SCHEMA.TABLE", help="A table; may be given repeatedly.")]


def snapshot(spec: Spec, table: Tables, json: Json = False) -> None:
    """Read tables from the source again while the log of the others is applied; by the running task or the next run."""
    task = load_spec(spec)
    from dmdelta.engine.snapshot.request import request_snapshot

    render.rows(request_snapshot(task, table), as_json=json, empty="no tables")
