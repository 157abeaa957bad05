"""`dmdelta validate`: silver compared with the source, now; and what the validator of a running task has found."""

import logging
import sys
from typing import Annotated

import typer

from dmdelta.cli import render, validator
from dmdelta.cli.default_command import DefaultCommandGroup
from dmdelta.cli.options import Json, Source, Spec
from dmdelta.config import load_spec
from dmdelta.errors import QualityError
from dmdelta.logging import configure

app = typer.Typer(
    cls=DefaultCommandGroup, help="Silver compared with the source.", add_completion=False, rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Silver compared with the source: now (`validate SPEC`), or what the validator of the task has found."""


@app.command("now")
def validate(
    spec: Spec,
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="A table; * and ? stand for several.")] = "*",
    threads: Annotated[int, typer.Option(min=1, max=64, help="Connections that read the source at once.")] = 2,
    limit: Annotated[int, typer.Option(min=0, help="Rows of each table that are shown with their values.")] = 20,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for what the source has to land.")] = 60.0,
    fix: Annotated[bool, typer.Option("--fix", help="Read the rows that differ again, into silver.")] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Compare silver with the source, row by row where they differ; exit code 6 if they do, and are not put right."""
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.table_validation import Validated, ValidateRequest
    from dmdelta.engine.validating import validate as compare

    def show(found: Validated) -> None:
        if not json and sys.stdout.isatty():
            render.console().print(f"{found.table}: {'the same' if found.is_clean else 'differs'}", markup=False)

    found = compare(task, ValidateRequest(table, source, threads, limit, wait, fix), show)
    if json:
        render.print_json(found)
    else:
        render.rows([_line(one) for one in found], as_json=False, empty="no tables")
        rows = [{"table": one.table, **render.plain(row)} for one in found for row in one.differences]
        if rows:
            render.rows(rows, as_json=False, empty="")
    if not all(one.is_clean or (one.fixed and not one.not_looked_at and not one.uncompared) for one in found):
        raise typer.Exit(QualityError.exit_code)


def _line(found: object) -> dict[str, object]:
    return {name: value for name, value in render.plain(found).items() if name != "differences"}


app.command("status")(validator.status)
app.command("show-error")(validator.show_error)
app.command("ignore-error")(validator.ignore_error)
app.command("resolve-error")(validator.resolve_error)
app.command("clear-error")(validator.clear_error)
