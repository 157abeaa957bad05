"""Arguments and options that several commands share."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

import typer

from dmdelta.config.section import parse_duration

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The task's YAML file.")]
Source = Annotated[str | None, typer.Option("--source", metavar="ID", help="The source, if the task has several.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document.")]


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is UTC.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        found = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # Python 3.10 knows no Z
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time such as 2026-11-21T10:00:00+01:00") from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def table_name(text: str) -> tuple[str, str]:
    """Schema and table of `schema.table`.

    Raises:
        typer.BadParameter: it is not written so.
    """
    schema, _, table = text.partition(".")
    if not schema or not table:
        raise typer.BadParameter(f"{text!r} is no table: write it as schema.table")
    return schema, table


def span(text: str) -> timedelta:
    """A span of time as the spec writes it, longer than none.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        found: timedelta = parse_duration(text)
    except ValueError:
        found = timedelta(0)
    if found <= timedelta(0):
        raise typer.BadParameter(f"{text!r} is no span of time such as 24h or 90m")
    return found
