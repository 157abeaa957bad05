"""`dmdelta quality`: evaluate expectations on silver tables, and release quarantined rows."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.default_command import DefaultCommandGroup
from dmdelta.cli.options import Json, Source, Spec
from dmdelta.config import load_spec
from dmdelta.errors import QualityError
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.quality.evaluation import TableResult
    from dmdelta.engine.quality.release import Released

app = typer.Typer(
    cls=DefaultCommandGroup,
    no_args_is_help=True,
    help="Evaluate expectations on silver tables, and release quarantined rows.",
    rich_markup_mode=None,
)
_TABLE = typer.Option(metavar="SCHEMA.TABLE", help="Table name; * and ? match several.")
_PLACE = "binlog.000012:4711, a GTID, a time such as 2026-11-21T10:00:00Z, or batch:17"


@app.callback()
def group() -> None:
    """Evaluate expectations on silver tables, and release quarantined rows."""


@app.command("judge")
def judge(
    spec: Spec,
    table: Annotated[str, _TABLE] = "*",
    begin: Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"Start of the range: {_PLACE}.")] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="End of the range: a position or a time, exclusive; a GTID or a batch, inclusive.",
        ),
    ] = None,
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help="Evaluate the N newest batches.")] = None,
    images: Annotated[
        bool, typer.Option("--images", help="Evaluate every row image in the range, instead of silver's rows.")
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Rebuild the range from bronze and evaluate it; does not require silver's history."
        ),
    ] = False,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write Great Expectations' Data Docs (HTML) to this folder."),
    ] = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Evaluate expectations on silver tables, or on the rows that a range wrote; exit code 6 if one fails."""
    task = load_spec(spec)
    if last is not None and (begin is not None or end is not None):
        raise typer.BadParameter("--last cannot be combined with --from or --to")
    configure(level=logging.WARNING)
    from dmdelta.engine.quality.command import QualityRequest, evaluate_tables

    def show(result: "TableResult") -> None:
        if not json and sys.stdout.isatty():
            name = ".".join(result.judged.table)
            render.console().print(f"{name}: {'failed' if result.failed else 'passed'}", markup=False)

    evaluated = evaluate_tables(task, QualityRequest(table, source, begin, end, last, images, replay), show)
    if docs is not None:
        from dmdelta.engine.quality.command import write_docs

        page = write_docs(docs, evaluated)
        if not json:
            render.console().print(f"Data Docs: {page}" if page else "no Data Docs: no table has a suite", markup=False)
    lines = [
        {"table": ".".join(table_result.judged.table), "scope": table_result.judged.scope, **render.plain(result)}
        for table_result in evaluated
        for result in table_result.results
    ]
    render.rows(lines, as_json=json, empty="no expectations")
    if any(result.failed for result in evaluated):
        raise typer.Exit(QualityError.exit_code)


@app.command("release")
def release(
    spec: Spec,
    table: Annotated[str, _TABLE] = "*",
    force: Annotated[bool, typer.Option("--force", help="Release rows that still fail, too.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Delete the quarantined rows instead of releasing them.")
    ] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Release quarantined rows that pass now to silver; a running task pauses meanwhile."""
    task = load_spec(spec)
    if force and discard:
        raise typer.BadParameter("--force and --discard are mutually exclusive")
    configure(level=logging.WARNING)
    from dmdelta.engine.quality.release import ReleaseRequest, release

    released: list[Released] = release(task, ReleaseRequest(table, source, force, discard))
    render.rows(released, as_json=json, empty="no rows are quarantined")
