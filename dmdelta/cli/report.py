"""`dmdelta report`: a health page as an HTML file."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Spec, span
from dmdelta.cli.reading import reading
from dmdelta.config import load_spec
from dmdelta.errors import ConfigError


def report(
    spec: Spec,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="The HTML file to write.")
    ] = Path("report.html"),
    last: Annotated[
        timedelta, typer.Option(parser=span, metavar="SPAN", help="The period to cover: 24h, 90m.")
    ] = timedelta(hours=24),
    json: Json = False,
) -> None:
    """Write a page about the task's last day: health, lag, rows, batch times, checks, schema changes, safe mode.

    The page needs no network and no server; --json prints its data instead.
    """
    task = load_spec(spec)
    with reading(task) as shown:
        from dmdelta.report.gather import gather
        from dmdelta.report.health import plan_verdict
        from dmdelta.report.page import render_page

        contents = gather(task, last, shown.stage)
    if json:
        render.print_json(contents)
        return
    try:
        output.write_text(render_page(contents), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}", hint="name another file with -o") from error
    render.console().print(f"{output}: {plan_verdict(contents).headline.lower()}", markup=False)
