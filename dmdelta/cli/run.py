"""`dmdelta run`: the main job."""

from typing import Annotated

import typer

from dmdelta.cli.options import Spec
from dmdelta.cli.progress import print_summary, showing_progress
from dmdelta.config import load_spec


def run(
    spec: Spec,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End when all that the source has now is in silver.")
    ] = False,
    safe_mode: Annotated[bool, typer.Option("--safe-mode", help="Apply as if anything may be there already.")] = False,
) -> None:
    """Relay, land and apply, until SIGTERM or Ctrl-C."""
    task = load_spec(spec)
    from dmdelta.engine.run import RunOptions, run_task

    options = RunOptions(until_caught_up=until_caught_up, safe_mode=safe_mode)
    with showing_progress() as report:
        summary = run_task(task, options, report)
    print_summary(summary)
