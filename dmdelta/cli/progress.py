"""The output of `run`, during the run and at its end: a live view on a terminal, JSON lines in a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging import WARNING
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from dmdelta.cli.render import console, print_json, table_of
from dmdelta.cli.run_view import ReadStatus, live_view
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.logging import configure

if TYPE_CHECKING:  # the engine imports Spark
    from dmdelta.engine.telemetry.counters import Progress, RunSummary, TableLoad


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Where a run reports to, from any thread.

    Attributes:
        report: receives each progress report.
        follow: receives, once, the function that reads the current status.
    """

    report: Callable[["Progress"], None]
    follow: Callable[[ReadStatus], None]


@contextmanager
def showing_run(stop: StopRequest, *, as_json: bool = False, level: int = WARNING) -> Iterator[RunOutput]:
    """Show a run until the block ends.

    A terminal shows the status, and the log from `level` on. A pipe gets every report as a JSON line on stdout, and the
    log as JSON lines on stderr.

    Args:
        stop: the run's; the view shows that it was requested.
        as_json: as in a pipe.
    """
    if as_json or not sys.stdout.isatty():
        configure()
        yield RunOutput(lambda progress: print_json({"progress": progress}, indent=None), lambda _: None)
        return
    with live_view(stop, level) as view:
        yield RunOutput(lambda _: None, view.follow)


def print_summary(summary: "RunSummary", *, as_json: bool = False) -> None:
    """Print the result of the run."""
    if as_json or not sys.stdout.isatty():
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
