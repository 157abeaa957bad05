"""`dmdelta binlog`: operator overrides for single statements."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Source, Spec
from dmdelta.config import load_spec
from dmdelta.engine.control.protocol import DecideOperator, ListOperators
from dmdelta.engine.inspect.operate import operate
from dmdelta.model.position import Position

Verb = Literal["skip", "replace", "inject"]
Where = Annotated[
    str, typer.Option("--position", metavar="EPOCH/FILE:OFFSET", help="Position of the statement, as in its error.")
]
Statements = Annotated[list[str], typer.Option("--sql", help="A statement; may be given repeatedly.")]

app = typer.Typer(no_args_is_help=True, help="Operator overrides for single statements.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Operator overrides for single statements. A running task restarts its sources to apply a change at once."""


@app.command("list")
def list_(spec: Spec, json: Json = False) -> None:
    """List the overrides in effect."""
    render.rows(operate(load_spec(spec), ListOperators()), as_json=json, empty="no overrides")


@app.command("skip")
def skip(spec: Spec, position: Where, source: Source = None, json: Json = False) -> None:
    """Skip a statement: silver keeps its columns and rows."""
    _decide(spec, source, position, "skip", (), as_json=json)


@app.command("replace")
def replace(spec: Spec, position: Where, sql: Statements, source: Source = None, json: Json = False) -> None:
    """Apply other statements instead of one."""
    _decide(spec, source, position, "replace", sql, as_json=json)


@app.command("inject")
def inject(spec: Spec, position: Where, sql: Statements, source: Source = None, json: Json = False) -> None:
    """Apply other statements before one."""
    _decide(spec, source, position, "inject", sql, as_json=json)


@app.command("revert")
def revert(spec: Spec, position: Where, source: Source = None, json: Json = False) -> None:
    """Remove an override that has not been applied yet."""
    _decide(spec, source, position, None, (), as_json=json)


def _decide(
    spec: Path, source: str | None, position: str, verb: Verb | None, sql: Sequence[str], *, as_json: bool
) -> None:
    where = str(Position.parse(position))
    command = DecideOperator(source=source, position=where, verb=verb, statements=list(sql))
    render.rows(operate(load_spec(spec), command), as_json=as_json, empty="")
