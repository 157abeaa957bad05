"""`dmdelta events`: a look into bronze."""

from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.model.change import Op


def events(
    spec: Spec,
    table: Annotated[str | None, typer.Option(help="Only this table: schema.table.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="From this position on: binlog.000001:4.")] = None,
    op: Annotated[Op | None, typer.Option(help="Only this kind of change.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many rows.")] = 20,
    json: Json = False,
) -> None:
    """Look into bronze: each change with its position, in the order of the log."""
    task = load_spec(spec)
    from dmdelta.engine.look import EventQuery
    from dmdelta.engine.look import events as look

    query = EventQuery(table=table, start=start, op=op, limit=limit)
    render.rows(look(task, query), as_json=json, empty="no such events in bronze")
