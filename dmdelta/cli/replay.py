"""`dmdelta replay`: apply ranges of history again."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Begin, End, Json, Source, Spec, Tables
from dmdelta.config import load_spec
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.history.scratch import ReplayProgress


def replay(
    spec: Spec,
    table: Tables,
    begin: Begin = None,
    end: End = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="SCHEMA.TABLE", help="Create this new table, in the source's state at --to."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild the silver table from bronze and replace it.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Evaluate the result first; if a `stop` expectation fails, write nothing (exit code 6)."
        ),
    ] = False,
    source: Source = None,
    json: Json = False,
) -> None:
    """Apply a range of history again: repair what the range wrote to silver, keep newer rows."""
    task = load_spec(spec)
    if into is not None and rebuild:
        raise typer.BadParameter("--into and --rebuild do not go together")
    from dmdelta.engine.replay.command import replay as carry_out
    from dmdelta.engine.replay.table import ReplayRequest, ReplayTo

    to = ReplayTo.NEW if into is not None else ReplayTo.REBUILD if rebuild else ReplayTo.LIVE
    with _showing_ranges() as report:
        found = carry_out(
            task, ReplayRequest(table=table, to=to, begin=begin, end=end, into=into, source=source, check=check), report
        )
    render.rows(found, as_json=json, empty="no tables")


@contextmanager
def _showing_ranges() -> Iterator[Callable[["ReplayProgress"], object]]:
    """A line that updates on a terminal; a pipe gets the log, as JSON lines on stderr."""
    if not sys.stderr.isatty():
        configure(level=logging.INFO)
        yield lambda _: None
        return
    configure(level=logging.WARNING)
    with render.console(stderr=True).status("starting Spark …") as status:
        yield lambda step: status.update(f"{step.table}: {step.done:,} of {step.stretches:,} ranges")
