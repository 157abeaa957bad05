"""`dmdelta validate`: compare silver with the source now, or show the results of the task's validator."""

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
    cls=DefaultCommandGroup, help="Compare silver with the source.", add_completion=False, rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Compare silver with the source: now (`validate SPEC`), or by the task's continuous validator."""


@app.command("now")
def validate(
    spec: Spec,
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="Table name; * and ? match several.")] = "*",
    threads: Annotated[int, typer.Option(min=1, max=64, help="Connections that read the source in parallel.")] = 2,
    limit: Annotated[
        int, typer.Option(min=0, help="Maximum number of differing rows per table that are shown with their values.")
    ] = 20,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait until bronze reaches the source's position.")
    ] = 60.0,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair silver: read the rows that differ from the source again.")
    ] = False,
    against: Annotated[
        str,
        typer.Option(
            metavar="SIDE", help="What to compare the source with: `silver`, or `sink` for the sink's target."
        ),
    ] = "silver",
    source: Source = None,
    json: Json = False,
) -> None:
    """Compare every table with the source, row by row where they differ; exit code 6 if one differs or is not compared.

    Each table of the source and of silver gets a line with its status. `same`, `differs` and `partly compared`: the
    table was compared; `partly compared` lists the columns that were not. `not compared`: the comparison was not
    possible; the reason is shown. `excluded`: there is nothing to compare, or the spec makes both sides differ. Every
    status except `same` and `excluded` sets exit code 6.
    """
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.validation.command import validate as compare
    from dmdelta.engine.validation.results import Against, Validated, ValidateRequest

    if against not in (sides := [side.value for side in Against]):
        raise typer.BadParameter(f"{against!r} is not one of {', '.join(sides)}", param_hint="--against")
    if fix and Against(against) is Against.SINK:
        raise typer.BadParameter("repairs silver, not the sink's target", param_hint="--fix")

    def show(result: Validated) -> None:
        if not json and sys.stdout.isatty():
            render.console().print(f"{result.table}: {result.status.value}", markup=False)

    results = compare(task, ValidateRequest(table, source, threads, limit, wait, fix, Against(against)), show)
    if json:
        render.print_json(results)
    else:
        render.rows([_line(result) for result in results], as_json=False, empty="no tables")
        rows = [{"table": result.table, **render.plain(row)} for result in results for row in result.differences]
        if rows:
            render.rows(rows, as_json=False, empty="")
    if not all(result.is_clean for result in results):
        raise typer.Exit(QualityError.exit_code)


def _line(result: object) -> dict[str, object]:
    return {name: value for name, value in render.plain(result).items() if name != "differences"}


app.command("status")(validator.status)
app.command("show-error")(validator.show_error)
app.command("ignore-error")(validator.ignore_error)
app.command("resolve-error")(validator.resolve_error)
app.command("clear-error")(validator.clear_error)
