"""`dmdelta snapshot`: reads tables from the source again."""

from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import TakeSnapshot
from dmdelta.engine.inspect.operate import operate

Tables = Annotated[list[str], typer.Option("--table", metavar="SCHEMA.TABLE", help="A table; may be given repeatedly.")]


def snapshot(spec: Spec, table: Tables, json: Json = False) -> None:
    """Read tables from the source again while the log of the others is applied; by the running task or the next run."""
    render.rows(operate(load_spec(spec), TakeSnapshot(tables=table)), as_json=json, empty="no tables")
