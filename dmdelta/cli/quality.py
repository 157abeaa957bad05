"""`dmdelta quality`: what is expected of tables, and the rows that are kept apart."""

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
    help="What is expected of tables, and whether it is so.",
    rich_markup_mode=None,
)
_TABLE = typer.Option(metavar="SCHEMA.TABLE", help="A table; * and ? stand for several.")
_PLACE = "binlog.000012:4711, a GTID, a time such as 2026-11-21T10:00:00Z, or batch:17"


@app.callback()
def group() -> None:
    """What is expected of tables, and the rows that are kept apart."""


@app.command("judge")
def judge(
    spec: Spec,
    table: Annotated[str, _TABLE] = "*",
    begin: Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"From there on: {_PLACE}.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="PLACE", help="Up to there.")] = None,
    last: Annotated[int | None, typer.Option(min=1, metavar="N", help="The N batches that landed last.")] = None,
    images: Annotated[
        bool, typer.Option("--images", help="Judge each row that the range wrote, each time, instead of silver.")
    ] = False,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Rebuild the range from bronze and evaluate it: silver's history is not needed."),
    ] = False,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write Great Expectations' Data Docs there: HTML pages."),
    ] = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Judge silver's tables, or the rows that a range touched, by their suites; exit code 6 if anything fails."""
    task = load_spec(spec)
    if last is not None and (begin is not None or end is not None):
        raise typer.BadParameter("--last and --from, --to do not go together")
    configure(level=logging.WARNING)
    from dmdelta.engine.quality.command import QualityRequest, evaluate_tables

    def show(found: "TableResult") -> None:
        if not json and sys.stdout.isatty():
            name = ".".join(found.judged.table)
            render.console().print(f"{name}: {'fails' if found.failed else 'as it should be'}", markup=False)

    found = evaluate_tables(task, QualityRequest(table, source, begin, end, last, images, replay), show)
    if docs is not None:
        from dmdelta.engine.quality.command import write_docs

        page = write_docs(docs, found)
        if not json:
            render.console().print(
                f"Data Docs: {page}" if page else "no Data Docs: no table has a contract", markup=False
            )
    lines = [
        {"table": ".".join(one.judged.table), "scope": one.judged.scope, **render.plain(result)}
        for one in found
        for result in one.results
    ]
    render.rows(lines, as_json=json, empty="nothing is expected")
    if any(one.failed for one in found):
        raise typer.Exit(QualityError.exit_code)


@app.command("release")
def release(
    spec: Spec,
    table: Annotated[str, _TABLE] = "*",
    force: Annotated[bool, typer.Option("--force", help="Send on what still fails, too.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Forget the rows; silver gets none of them.")] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Send rows that were kept apart on to silver, if they pass now; a task that runs pauses meanwhile."""
    task = load_spec(spec)
    if force and discard:
        raise typer.BadParameter("--force and --discard do not go together")
    configure(level=logging.WARNING)
    from dmdelta.engine.quality.release import ReleaseRequest, release

    found: list[Released] = release(task, ReleaseRequest(table, source, force, discard))
    render.rows(found, as_json=json, empty="no rows are kept apart")
