"""Renders the engine's results on a terminal, in a pipe, or as JSON.

Records of the engine are shown by their fields, so that a new field needs no change here.
"""

import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dmdelta.errors import DmdeltaError
from dmdelta.model.plain import plain

PIPE_WIDTH = 400
"""Width for output that is not a terminal: wide enough not to wrap a table."""
CELL_WIDTH = 100
"""Maximum width of a value in a table: JSON has the whole value."""


def print_json(value: Any, *, indent: int | None = 2) -> None:
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, default=str, indent=indent) + "\n")
    sys.stdout.flush()


def rows(records: Sequence[Any], *, as_json: bool, empty: str) -> None:
    """One line per record; empty columns are omitted."""
    if as_json:
        print_json(records)
    elif records:
        console().print(table_of([plain(record) for record in records]))
    else:
        console().print(empty, markup=False)


def record(value: Any, *, as_json: bool) -> None:
    """A record: its single values as lines, then each list of records as a titled table."""
    if as_json:
        print_json(value)
        return
    out = console()
    for key, inner in plain(value).items():
        if _is_table(inner):
            out.print(f"\n{_words(key)}", style="bold", markup=False)
            out.print(table_of(inner))
        elif inner not in (None, [], {}):
            out.print(f"{_words(key)}: {_cell(inner)}", markup=False, highlight=False)


def table_of(records: Sequence[Mapping[str, Any]]) -> Table:
    """A table of records that all have the same keys."""
    keys = [key for key in records[0] if any(row[key] not in (None, "", [], {}) for row in records)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for key in keys:
        numbers = all(isinstance(row[key], (int, float)) for row in records if row[key] is not None)
        table.add_column(_words(key), justify="right" if numbers else "left", overflow="fold")
    for row in records:
        table.add_row(*(Text(_cell(row[key])) for key in keys))
    return table


@dataclass(frozen=True, slots=True)
class Working:
    """Shows what a command does, on stderr, and its results as they come, on stdout.

    Attributes:
        stage: replaces what the command does now.
        show_line: prints a line of the result.
    """

    stage: Callable[[str], None]
    show_line: Callable[[str], None]


@contextmanager
def working(first: str) -> Iterator[Working]:
    """Show on a terminal what a command does and for how long, until the block ends; in a pipe only its results.

    Args:
        first: what it does first.
    """
    if not sys.stderr.isatty():
        yield Working(lambda _: None, lambda line: console().print(line, markup=False))
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(first)

        def show(line: str) -> None:
            progress.stop()
            console().print(line, markup=False)
            progress.start()

        yield Working(lambda doing: progress.update(task, description=doing), show)


def print_error(error: DmdeltaError, *, debug: bool) -> None:
    """Print the message, the context and the hint of an error to stderr."""
    if debug:
        traceback.print_exception(error)
    err = console(stderr=True)
    facts = ", ".join(f"{key}={value}" for key, value in error.context.items())
    err.print(Text.assemble(("error: ", "bold red"), error.message, f" ({facts})" if facts else ""))
    if error.hint:
        err.print(Text.assemble(("hint: ", "bold"), error.hint))


def console(*, stderr: bool = False) -> Console:
    """Created for each use: the streams of a test or a notebook change."""
    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, soft_wrap=True, width=None if is_terminal else PIPE_WIDTH, highlight=False)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(inner, dict) for inner in value)


def _words(key: str) -> str:
    return key.replace("_", " ")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else str(value)
    line = " ".join(text.split())
    return line if len(line) <= CELL_WIDTH else line[: CELL_WIDTH - 1] + "…"
