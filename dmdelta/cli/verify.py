"""`dmdelta verify`: compare bronze with the log, read by an independent decoder."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Begin, End, Json, Source, Spec, Tables
from dmdelta.config import load_spec
from dmdelta.errors import QualityError
from dmdelta.logging import configure
from dmdelta.model.plain import plain
from dmdelta.model.position import Position

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.verify.command import Verified
    from dmdelta.verification.results import NotCovered


def verify(
    spec: Spec,
    table: Tables = "*",
    begin: Begin = None,
    end: End = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Compare every row event in bronze with the source's log, read by mysql-replication; exit code 6 on a difference.

    The log is read from the archive or the server; for ranges that neither has, from the relay's segments. What
    mysql-replication does not read faithfully is listed as not covered, with the reason.
    """
    task = load_spec(spec)
    configure(level=logging.WARNING)
    from dmdelta.engine.verify.command import VerifyRequest
    from dmdelta.engine.verify.command import verify as compare

    with _progress(shown=not json and sys.stdout.isatty()) as report:
        found = compare(task, VerifyRequest(table, source, begin, end), report)
    if json:
        render.print_json(found)
    else:
        print_verified(found)
    if not all(one.is_clean for one in found):
        raise typer.Exit(QualityError.exit_code)


def print_verified(found: "Sequence[Verified]") -> None:
    """Print the ranges that were read, the results by table, and the differences."""
    ranges = [
        {"source": part.source, "from": str(part.begin), "to": str(part.end), "read_from": part.read_from.value}
        for one in found
        for part in one.ranges
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
            "not_covered": "; ".join(map(_missed, table.not_covered)),
        }
        for one in found
        for table in one.tables
    ]
    render.rows(tables, as_json=False, empty="no row events")
    differences = [plain(difference) for one in found for difference in one.differences]
    if differences:
        render.rows(differences, as_json=False, empty="")


def _missed(one: "NotCovered") -> str:
    counts = {"events": one.events, "rows": one.rows, "values": one.values}
    counted = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    return f"{one.reason}: {counted}"


@contextmanager
def _progress(*, shown: bool) -> "Iterator[Callable[[str, Position, Position], object]]":
    """On a terminal, a line with the progress of the comparison."""
    if not shown:
        yield lambda _source, _at, _end: None
        return
    with render.console().status("starting Spark …") as status:
        yield lambda source, at, end: status.update(f"{source}: compared up to {at}, of {end}")
