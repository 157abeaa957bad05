"""`dmdelta maintain`: compacts small files, purges deleted rows and removes old files and commits."""

import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.maintenance.command import Maintained


def maintain(
    spec: Spec,
    table: Annotated[
        str, typer.Option(metavar="SCHEMA.TABLE", help="A table; * and ? match several, * alone includes bronze.")
    ] = "*",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what the tables need.")] = False,
    json: Json = False,
) -> None:
    """Run table maintenance: OPTIMIZE, purge of deletion vectors, VACUUM, the log. A running task pauses meanwhile."""
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.maintenance.command import maintain as maintain_all

    def show(done: "Maintained") -> None:
        if not json and sys.stdout.isatty():
            render.console().print(f"{done.table}: {', '.join(done.done) or 'nothing to do'}", markup=False)

    render.rows(maintain_all(task, table, show, dry_run=dry_run), as_json=json, empty="no tables")
