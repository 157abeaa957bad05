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
    against: Annotated[
        str, typer.Option(metavar="SIDE", help="What the source is compared with: `silver`, or `sink`: its target.")
    ] = "silver",
    source: Source = None,
    json: Json = False,
) -> None:
    """Compare every table with the source, row by row where they differ; exit code 6 if one differs or is not compared.

    Each table of the source and of silver has a line with its status. `same`, `differs`, `partly compared`: it was
    compared, the latter without the columns that are listed. `not compared`: it should have been; the reason says what
    is in the way. `excluded`: there is nothing to compare, or the spec makes both sides differ. All but `same` and
    `excluded` make the exit code 6.
    """
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.validation.command import validate as compare
    from dmdelta.engine.validation.results import Against, Validated, ValidateRequest

    if against not in (sides := [side.value for side in Against]):
        raise typer.BadParameter(f"{against!r} is none of {', '.join(sides)}", param_hint="--against")
    if fix and Against(against) is Against.SINK:
        raise typer.BadParameter("it repairs silver, not the sink's target", param_hint="--fix")

    def show(found: Validated) -> None:
        if not json and sys.stdout.isatty():
            render.console().print(f"{found.table}: {found.status.value}", markup=False)

    found = compare(task, ValidateRequest(table, source, threads, limit, wait, fix, Against(against)), show)
    if json:
        render.print_json(found)
    else:
        render.rows([_line(one) for one in found], as_json=False, empty="no tables")
        rows = [{"table": one.table, **render.plain(row)} for one in found for row in one.differences]
        if rows:
            render.rows(rows, as_json=False, empty="")
    if not all(one.is_clean for one in found):
        raise typer.Exit(QualityError.exit_code)


def _line(found: object) -> dict[str, object]:
    return {name: value for name, value in render.plain(found).items() if name != "differences"}


app.command("status")(validator.status)
app.command("show-error")(validator.show_error)
app.command("ignore-error")(validator.ignore_error)
app.command("resolve-error")(validator.resolve_error)
app.command("clear-error")(validator.clear_error)
