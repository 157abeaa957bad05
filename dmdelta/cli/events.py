"""`dmdelta events`: queries bronze."""

from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.cli.reading import reading
from dmdelta.config import load_spec
from dmdelta.model.change import Op


def events(
    spec: Spec,
    table: Annotated[str | None, typer.Option(help="Only this table: schema.table.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Start at this position: binlog.000001:4.")] = None,
    op: Annotated[Op | None, typer.Option(help="Only this kind of change.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = 20,
    json: Json = False,
) -> None:
    """Show the changes in bronze, each with its position, in log order."""
    task = load_spec(spec)
    with reading(task) as shown:
        from dmdelta.engine.inspect.events import EventQuery
        from dmdelta.engine.inspect.events import events as look

        found = look(task, EventQuery(table=table, start=start, op=op, limit=limit), shown.stage)
    render.rows(found, as_json=json, empty="no matching events in bronze")
