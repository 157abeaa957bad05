"""`dmdelta verify`: compare bronze with the source's log, decoded by an independent library."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Source, Spec
from dmdelta.config import load_spec
from dmdelta.errors import QualityError
from dmdelta.logging import configure
from dmdelta.model.position import Position

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.verify.command import Verified
    from dmdelta.verification.results import NotCovered

_PLACE = "binlog.000012:4711, a GTID, a time such as 2026-11-21T10:00:00Z, or batch:17"


def verify(
    spec: Spec,
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="Table name; * and ? match several.")] = "*",
    begin: Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"Start of the range: {_PLACE}.")] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="End of the range: a position or a time, exclusive; a GTID or a batch, inclusive.",
        ),
    ] = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Compare every row event in bronze with the source's log, read by mysql-replication; exit code 6 on a difference.

    The log is read from the archive, from the server if it still has the range, or else from the relay's segments.
    Events that mysql-replication cannot read are listed as not covered, with the reason.
    """
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.verify.command import VerifyRequest
    from dmdelta.engine.verify.command import verify as compare

    with _progress(shown=not json and sys.stdout.isatty()) as report:
        results = compare(task, VerifyRequest(table, source, begin, end), report)
    if json:
        render.print_json(results)
    else:
        print_verified(results)
    if not all(result.is_clean for result in results):
        raise typer.Exit(QualityError.exit_code)


def print_verified(results: "Sequence[Verified]") -> None:
    """Print the ranges that were read, the results per table, and the differences, if any."""
    ranges = [
        {"source": part.source, "from": str(part.begin), "to": str(part.end), "read_from": part.read_from.value}
        for result in results
        for part in result.ranges
    ]
    render.rows(ranges, as_json=False, empty="nothing to verify")
    tables = [
        {
            "source": table.source,
            "table": table.table or "(unknown)",
            "events": table.events,
            "rows": table.rows,
            "values": table.values,
            "differences": table.differences,
            "not_covered": "; ".join(map(_not_covered, table.not_covered)),
        }
        for result in results
        for table in result.tables
    ]
    render.rows(tables, as_json=False, empty="no row events")
    differences = [render.plain(difference) for result in results for difference in result.differences]
    if differences:
        render.rows(differences, as_json=False, empty="")


def _not_covered(missed: "NotCovered") -> str:
    counts = {"events": missed.events, "rows": missed.rows, "values": missed.values}
    counted = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    return f"{missed.reason}: {counted}"


@contextmanager
def _progress(*, shown: bool) -> "Iterator[Callable[[str, Position, Position], object]]":
    """Shows the comparison's position as a status line on a terminal."""
    if not shown:
        yield lambda _source, _at, _end: None
        return
    with render.console().status("starting Spark …") as status:
        yield lambda source, at, end: status.update(f"{source}: compared up to {at}, of {end}")
