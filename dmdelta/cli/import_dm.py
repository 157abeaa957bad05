"""`dmdelta import-dm`: the files of a DM task as a spec."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from dmdelta.config.document import read_document
from dmdelta.config.from_dm import spec_from_dm
from dmdelta.errors import ConfigError


def import_dm(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="DM's file of the task.")],
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCE…", help="DM's files of its sources.")],
    lakehouse: Annotated[str, typer.Option(help="Where the Delta tables go: a folder or URI.")] = "lakehouse",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the spec there.")] = None,
) -> None:
    """Turn a DM task and its sources into a spec, and name what has no counterpart."""
    imported = spec_from_dm(read_document(task).values, [read_document(one).values for one in sources], lakehouse)
    text = yaml.safe_dump(imported.spec, sort_keys=False, allow_unicode=True, width=120)
    if output is None:
        typer.echo(text, nl=False)
    else:
        try:
            with output.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise ConfigError(f"cannot write {output}: {error.strerror}", hint="name another file") from error
    for remark in imported.remarks:
        typer.echo(f"{remark.key}: {remark.why}", err=True)
    if output is not None:
        typer.echo(f"wrote {output}; then: dmdelta check {output}")
