"""`dmdelta validate`: compare silver with the source; show the findings of a running task's validator."""

import logging
import sys
from typing import Annotated

import typer

from dmdelta.cli import render, validator
from dmdelta.cli.default_command import DefaultCommandGroup
from dmdelta.cli.options import Json, Source, Spec, Tables
from dmdelta.cli.reading import reading
from dmdelta.config import load_spec
from dmdelta.errors import QualityError
from dmdelta.logging import configure
from dmdelta.model.plain import plain

app = typer.Typer(
    cls=DefaultCommandGroup, help="Compare silver with the source.", add_completion=False, rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Compare silver with the source (`validate SPEC`), or manage the findings of the task's validator."""


@app.command("now")
def validate(
    spec: Spec,
    table: Tables = "*",
    threads: Annotated[
        int, typer.Option(min=1, max=64, help="Number of connections that read the source in parallel.")
    ] = 2,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of rows per table to show with their values.")] = 20,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until the source's changes have landed.")] = 60.0,
    fix: Annotated[bool, typer.Option("--fix", help="Repair silver: read the differing rows again.")] = False,
    against: Annotated[
        str, typer.Option(metavar="SIDE", help="Compare the source with `silver`, or with the target of the `sink`.")
    ] = "silver",
    source: Source = None,
    json: Json = False,
) -> None:
    """Compare every table with the source, down to rows; exit code 6 if a table differs or is not compared.

    The output lists each table of the source and of silver with its status. `same`: no differences. `differs`: rows
    differ. `partly compared`: no differences, but the listed columns cannot be compared. `not compared`: the reason
    states what prevents the comparison. `excluded`: there is nothing to compare, or the spec makes both sides differ.
    Every status except `same` and `excluded` causes exit code 6.
    """
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.validation.results import Against, Validated, ValidateRequest

    if against not in (sides := [side.value for side in Against]):
        raise typer.BadParameter(f"{against!r} is not one of {', '.join(sides)}", param_hint="--against")
    if fix and Against(against) is Against.SINK:
        raise typer.BadParameter("--fix repairs silver, not the sink's target", param_hint="--fix")
    with reading(task) as shown:
        from dmdelta.engine.validation.command import validate as compare

        def show(found: Validated) -> None:
            if not json and sys.stdout.isatty():
                shown.show_line(f"{found.table}: {found.status.value}")

        request = ValidateRequest(
            table=table, source=source, threads=threads, limit=limit, wait=wait, fix=fix, against=Against(against)
        )
        found = compare(task, request, show, shown.stage)
    if json:
        render.print_json(found)
    else:
        render.rows([_line(one) for one in found], as_json=False, empty="no tables")
        rows = [{"table": one.table, **plain(row)} for one in found for row in one.differences]
        if rows:
            render.rows(rows, as_json=False, empty="")
    if not all(one.is_clean for one in found):
        raise typer.Exit(QualityError.exit_code)


def _line(found: object) -> dict[str, object]:
    return {name: value for name, value in plain(found).items() if name != "differences"}


app.command("status")(validator.status)
app.command("show-error")(validator.show_error)
app.command("ignore-error")(validator.ignore_error)
app.command("resolve-error")(validator.resolve_error)
app.command("clear-error")(validator.clear_error)
