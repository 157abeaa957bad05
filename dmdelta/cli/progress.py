"""The output of `run`, during the run and at its end: a live view on a terminal, JSON lines in a pipe."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from dmdelta.cli.render import console, print_json, table_of
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.telemetry.counters import Progress, RunSummary, TableLoad


@contextmanager
def showing_progress() -> Iterator[Callable[["Progress"], None]]:
    """Show each progress report, from any thread, until the block ends.

    A terminal shows the newest report, and only warnings of the log. A pipe gets every report as a JSON line on stdout,
    and the log as JSON lines on stderr.
    """
    if not sys.stdout.isatty():
        configure(level=logging.INFO)
        yield lambda progress: print_json({"progress": progress}, indent=None)
        return
    configure(level=logging.WARNING)
    with Live(Text("starting Spark …"), console=console(), refresh_per_second=4, transient=True) as live:
        yield lambda progress: live.update(_view(progress))


def print_summary(summary: "RunSummary") -> None:
    """Print the result of the run."""
    if not sys.stdout.isatty():
        print_json({"summary": summary, "idle": summary.is_idle}, indent=None)
        return
    out = console()
    if summary.is_idle:
        out.print("no new changes")
    else:
        out.print(_view(summary.progress))
    out.print("stopped" if summary.stopped else "caught up")


def _view(progress: "Progress") -> Group:
    head = (
        f"{progress.seconds:,.0f} s: {progress.landed_batches:,} batches landed, "
        f"{progress.applied_rows:,} row changes applied"
    )
    tables = [{"table": name, "row_changes": rows} for name, rows in sorted(progress.tables.items())]
    sources = [{"source": name, "landed_to": end} for name, end in sorted(progress.landed_to.items())]
    loads = [_load(name, load) for name, load in sorted(progress.loads.items())]
    clashes = [{"shard": name, "keys of other shards": keys} for name, keys in sorted(progress.clashes.items())]
    return Group(Text(head), *(table_of(records) for records in (sources, loads, tables, clashes) if records))


def _load(name: str, load: "TableLoad") -> dict[str, str]:
    left = "" if load.seconds_left is None else f"{load.seconds_left:,.0f} s"
    return {
        "load": name,
        "chunks": f"{load.chunks:,} of {load.all_chunks:,}",
        "rows (approx.)": f"{load.rows:,} of {load.all_rows:,}",
        "rows/s": "" if load.rows_per_second is None else f"{load.rows_per_second:,.0f}",
        "time left": left if load.chunks < load.all_chunks else "loaded",
    }
