"""`dmdelta maintain`: small files, dead rows and old files."""

import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec
from dmdelta.config import load_spec
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.maintaining import Maintained


def maintain(
    spec: Spec,
    table: Annotated[
        str, typer.Option(metavar="SCHEMA.TABLE", help="A table; * and ? stand for several, * alone for bronze, too.")
    ] = "*",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the tables need.")] = False,
    json: Json = False,
) -> None:
    """Keep the tables fast and small: OPTIMIZE, purge of deletion vectors, VACUUM. A running task pauses meanwhile."""
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.maintaining import maintain as care_for_all

    def show(done: "Maintained") -> None:
        if not json and sys.stdout.isatty():
            render.console().print(f"{done.table}: {', '.join(done.done) or 'nothing to do'}", markup=False)

    render.rows(care_for_all(task, table, show, dry_run=dry_run), as_json=json, empty="no tables")
