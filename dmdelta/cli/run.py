"""`dmdelta run`: runs the task."""

import os
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer

from dmdelta.cli.options import Spec, moment
from dmdelta.config import load_spec
from dmdelta.engine.control.cancellation import StopRequest


def run(
    spec: Spec,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End once all that the source has now is in silver.")
    ] = False,
    safe_mode: Annotated[
        bool, typer.Option("--safe-mode", help="Apply changes in safe mode: each may have been applied before.")
    ] = False,
    start_time: Annotated[
        datetime | None,
        typer.Option(
            "--start-time",
            metavar="TIME",
            parser=moment,
            help="Restart at the first transaction committed at or after this time: 2026-11-21T10:00:00+01:00.",
        ),
    ] = None,
    remove_meta: Annotated[
        bool,
        typer.Option(
            "--remove-meta",
            help="Reset the task and restart: at --start-time, else where its first start did.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines, also on a terminal.")] = False,
) -> None:
    """Relay, land and apply changes, until SIGTERM or Ctrl-C.

    A terminal shows the status, refreshed every second, and warnings above it. A pipe gets JSON lines.
    """
    task = load_spec(spec)
    from dmdelta.cli.progress import print_summary, showing_run
    from dmdelta.engine.run.runner import RunOptions, run_task

    options = RunOptions(until_caught_up, safe_mode, start_time, remove_meta)
    stop = StopRequest()
    with (
        _ending_on_ctrl_c(),
        _without_variables(task.variables_of_passwords),
        showing_run(stop, as_json=json) as output,
    ):
        summary = run_task(task, options, output.report, stop, output.follow)
    print_summary(summary, as_json=json)


@contextmanager
def _ending_on_ctrl_c() -> Iterator[None]:
    """Let the second Ctrl-C, which the run does not handle, end the process: KeyboardInterrupt waits for threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _without_variables(variables: Collection[str]) -> Iterator[None]:
    """Remove them from the environment: they have been read, and Java, its workers and relays would inherit them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # part of a larger program, which owns the environment
        return
    removed = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(removed)
