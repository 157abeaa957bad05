"""`dmdelta run`: the main job."""

import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer

from dmdelta.cli.options import Spec, moment
from dmdelta.cli.progress import print_summary, showing_progress
from dmdelta.config import load_spec


def run(
    spec: Spec,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End when all that the source has now is in silver.")
    ] = False,
    safe_mode: Annotated[bool, typer.Option("--safe-mode", help="Apply as if anything may be there already.")] = False,
    start_time: Annotated[
        datetime | None,
        typer.Option(
            "--start-time",
            metavar="TIME",
            parser=moment,
            help="Begin anew at the first transaction committed at or after this time: 2026-11-21T10:00:00+01:00.",
        ),
    ] = None,
    remove_meta: Annotated[
        bool,
        typer.Option(
            "--remove-meta",
            help="Forget where the task stands and begin anew: at --start-time, else as its first start did.",
        ),
    ] = False,
) -> None:
    """Relay, land and apply, until SIGTERM or Ctrl-C."""
    task = load_spec(spec)
    from dmdelta.engine.run import RunOptions, run_task

    options = RunOptions(until_caught_up, safe_mode, start_time, remove_meta)
    with _keeping_to_itself(task.variables_of_passwords), showing_progress() as report:
        summary = run_task(task, options, report)
    print_summary(summary)


@contextmanager
def _keeping_to_itself(variables: Collection[str]) -> Iterator[None]:
    """Without them in the environment: they have been read, and Java, its workers and relays would inherit them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # a part of a larger program, whose environment is not ours
        return
    kept = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
