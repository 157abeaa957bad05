"""`dmdelta replay`: ranges of history applied again."""

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
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="A table; * and ? stand for several.")],
    begin: Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"From there on: {_PLACE}.")] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="PLACE", help="Up to there: before it, behind a GTID.")
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="SCHEMA.TABLE", help="Make this new table: as the source's was at --to."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the silver table anew from bronze, and put it in its place.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Evaluate the result first; if a `stop` expectation fails, nothing is written: exit code 6."
        ),
    ] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Apply a range of history again: what it wrote to the silver table is repaired, what is newer stays."""
    task = load_spec(spec)
    if into is not None and rebuild:
        raise typer.BadParameter("--into and --rebuild do not go together")
    from dmdelta.engine.replay.command import replay as carry_out
    from dmdelta.engine.replay.table import ReplayRequest, ReplayTo

    to = ReplayTo.NEW if into is not None else ReplayTo.REBUILD if rebuild else ReplayTo.LIVE
    with _showing_stretches() as report:
        found = carry_out(task, ReplayRequest(table, to, begin, end, into, source, check), report)
    render.rows(found, as_json=json, empty="no tables")


@contextmanager
def _showing_stretches() -> Iterator[Callable[["ReplayProgress"], object]]:
    """A line that changes on a terminal; a pipe gets the log, as JSON lines on stderr."""
    if not sys.stderr.isatty():
        configure(level=logging.INFO)
        yield lambda _: None
        return
    configure(level=logging.WARNING)
    with render.console(stderr=True).status("starting Spark …") as status:
        yield lambda step: status.update(f"{step.table}: {step.done:,} of {step.stretches:,} stretches")
