"""`dmdelta quality`: expectations of tables, and quarantined rows."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.default_command import DefaultCommandGroup
from dmdelta.cli.options import Begin, End, Json, Source, Spec, Tables
from dmdelta.cli.reading import reading
from dmdelta.config import load_spec
from dmdelta.errors import QualityError
from dmdelta.logging import configure
from dmdelta.model.plain import plain

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.quality.evaluation import TableResult
    from dmdelta.engine.quality.release import Released

app = typer.Typer(
    cls=DefaultCommandGroup,
    no_args_is_help=True,
    help="Evaluate tables against their expectations.",
    rich_markup_mode=None,
)


@app.callback()
def group() -> None:
    """Evaluate tables against their expectations; release quarantined rows."""


@app.command("judge")
def judge(
    spec: Spec,
    table: Tables = "*",
    begin: Begin = None,
    end: End = None,
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help="The range of the last N batches.")] = None,
    images: Annotated[
        bool,
        typer.Option("--images", help="Evaluate each version of each row that the range wrote, instead of silver."),
    ] = False,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Rebuild the range from bronze and evaluate it; silver's history is not needed."),
    ] = False,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write Great Expectations' Data Docs there: HTML pages."),
    ] = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Evaluate silver, or the rows that a range wrote, against the suites; exit code 6 if an expectation fails."""
    task = load_spec(spec)
    if last is not None and (begin is not None or end is not None):
        raise typer.BadParameter("--last and --from, --to do not go together")
    configure(level=logging.WARNING)
    with reading(task) as shown:
        from dmdelta.engine.quality.command import QualityRequest, evaluate_tables

        def show(found: "TableResult") -> None:
            if not json and sys.stdout.isatty():
                shown.show_line(f"{'.'.join(found.subject.table)}: {'fails' if found.failed else 'passes'}")

        request = QualityRequest(
            table=table, source=source, begin=begin, end=end, last=last, images=images, replay=replay
        )
        found = evaluate_tables(task, request, show, shown.stage)
    if docs is not None:
        from dmdelta.engine.quality.command import write_docs

        page = write_docs(docs, found)
        if not json:
            render.console().print(
                f"Data Docs: {page}" if page else "no Data Docs: no table has a contract", markup=False
            )
    lines = [
        {"table": ".".join(one.subject.table), "scope": one.subject.scope, **plain(result)}
        for one in found
        for result in one.results
    ]
    render.rows(lines, as_json=json, empty="no expectations")
    if any(one.failed for one in found):
        raise typer.Exit(QualityError.exit_code)


@app.command("release")
def release(
    spec: Spec,
    table: Tables = "*",
    force: Annotated[bool, typer.Option("--force", help="Also move rows that still fail.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Delete the quarantined rows instead of moving them.")
    ] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Move quarantined rows that now pass to silver; a running task pauses meanwhile."""
    task = load_spec(spec)
    if force and discard:
        raise typer.BadParameter("--force and --discard do not go together")
    configure(level=logging.WARNING)
    from dmdelta.engine.quality.release import ReleaseRequest, release

    found: list[Released] = release(task, ReleaseRequest(table, source, force, discard))
    render.rows(found, as_json=json, empty="no rows are in quarantine")
