"""`dmdelta sql`: query the tables of a task."""

import logging
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Spec
from dmdelta.cli.sql_output import Output
from dmdelta.config import load_spec
from dmdelta.logging import configure


def sql(
    spec: Spec,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="One query; without it, a prompt.")] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="POSITION",
            help="Read all tables as of this position: binlog.000012:4711, a GTID, a time such as "
            "2026-11-21T10:00:00Z, or batch:17. A transaction or a batch is included.",
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", help="The format of the rows.")] = Output.TABLE,
) -> None:
    """Query the tables of a task with Spark SQL; never writes to them. `shop.orders` is the table in silver,
    `shop.orders_live` is seconds old: silver and the changes that it does not have yet. Other names: `bronze.events`,
    `dm_meta.NAME` and `shop.orders_quarantine`. SHOW TABLES lists all names.
    """
    task = load_spec(spec)
    configure(level=logging.WARNING)
    if query is not None:
        from dmdelta.cli.sql_output import write
        from dmdelta.engine.live.sql import SqlSession

        write(SqlSession.open(task, at).query(query), output)
        return
    from dmdelta.cli.sql_prompt import run_prompt
    from dmdelta.engine.live.sql import SqlSession

    with render.console(stderr=True).status("starting Spark …"):
        session = SqlSession.open(task, at)
    run_prompt(session, output)
