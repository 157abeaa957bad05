"""Arguments and options shared by several commands."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

import typer

from dmdelta.config.section import parse_duration

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The task's YAML file.")]
Source = Annotated[str | None, typer.Option("--source", metavar="ID", help="The source, if the task has several.")]
Tables = Annotated[str, typer.Option("--table", metavar="SCHEMA.TABLE", help="A table; * and ? match several.")]
Begin = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="POSITION",
        help="Start of the range: binlog.000012:4711, a GTID, a time such as 2026-11-21T10:00:00Z, or batch:17.",
    ),
]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="POSITION", help="End of the range, exclusive; a GTID or a batch is included."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is in UTC.

    Raises:
        typer.BadParameter: it is not a time.
    """
    try:
        parsed = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # Python 3.10 rejects Z
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time such as 2026-11-21T10:00:00+01:00") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def table_name(text: str) -> tuple[str, str]:
    """Schema and table of `schema.table`.

    Raises:
        typer.BadParameter: it does not have this form.
    """
    schema, _, table = text.partition(".")
    if not schema or not table:
        raise typer.BadParameter(f"{text!r} is not a table: write it as schema.table")
    return schema, table


def span(text: str) -> timedelta:
    """A duration in the spec's format, longer than 0.

    Raises:
        typer.BadParameter: it is not a duration.
    """
    try:
        duration: timedelta = parse_duration(text)
    except ValueError:
        duration = timedelta(0)
    if duration <= timedelta(0):
        raise typer.BadParameter(f"{text!r} is not a duration such as 24h or 90m")
    return duration
