"""`dmdelta report`: a page that people look at."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec, span
from dmdelta.config import load_spec
from dmdelta.errors import ConfigError


def report(
    spec: Spec,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="Where the page goes: one HTML file.")
    ] = Path("report.html"),
    last: Annotated[
        timedelta, typer.Option(parser=span, metavar="SPAN", help="How much of the task's time: 24h, 90m.")
    ] = timedelta(hours=24),
    json: Json = False,
) -> None:
    """Make a page about the task's last day: is all well? Lag, rows, batch times, checks, schema changes, safe mode.

    The page needs no network and no server; with --json its facts are printed instead.
    """
    task = load_spec(spec)
    from dmdelta.report.gather import gather
    from dmdelta.report.page import render_page
    from dmdelta.report.verdict import plan_verdict

    found = gather(task, last)
    if json:
        render.print_json(found)
        return
    try:
        output.write_text(render_page(found), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}", hint="name another file with -o") from error
    render.console().print(f"{output}: {plan_verdict(found).headline.lower()}", markup=False)
