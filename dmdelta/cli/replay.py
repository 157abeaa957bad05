"""`dmdelta replay`: apply a range of the log again."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Source, Spec
from dmdelta.config import load_spec
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.history.scratch import ReplayProgress

_PLACE = "binlog.000012:4711, a GTID, a time such as 2026-11-21T10:00:00Z, or batch:17"


def replay(
    spec: Spec,
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="Table name; * and ? match several.")],
    begin: Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"Start of the range: {_PLACE}.")] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="End of the range: a position or a time, exclusive; a GTID or a batch, inclusive.",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEMA.TABLE", help="Create this table, with the rows that the source table had at --to."
        ),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild the silver table from bronze and replace its content.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Evaluate the result first; if a `stop` expectation fails, write nothing and exit with code 6.",
        ),
    ] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Apply a range of the log again: rows that it wrote to silver are repaired, newer rows are kept."""
    task = load_spec(spec)
    if into is not None and rebuild:
        raise typer.BadParameter("--into and --rebuild are mutually exclusive")
    from dmdelta.engine.replay.command import replay as run_replay
    from dmdelta.engine.replay.table import ReplayRequest, ReplayTo

    to = ReplayTo.NEW if into is not None else ReplayTo.REBUILD if rebuild else ReplayTo.LIVE
    with _progress() as report:
        replayed = run_replay(task, ReplayRequest(table, to, begin, end, into, source, check), report)
    render.rows(replayed, as_json=json, empty="no tables")


@contextmanager
def _progress() -> Iterator[Callable[["ReplayProgress"], object]]:
    """Shows a status line on a terminal; otherwise stderr gets the log as JSON lines."""
    if not sys.stderr.isatty():
        configure(level=logging.INFO)
        yield lambda _: None
        return
    configure(level=logging.WARNING)
    with render.console(stderr=True).status("starting Spark …") as status:
        yield lambda step: status.update(f"{step.table}: {step.done:,} of {step.stretches:,} ranges")
