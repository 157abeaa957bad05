"""`dmdelta import-dm`: converts a DM task to a spec."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from dmdelta.config.document import read_document
from dmdelta.errors import ConfigError


def import_dm(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="DM's task file.")],
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCE…", help="DM's source files.")],
    lakehouse: Annotated[str, typer.Option(help="Where the Delta tables are stored: a folder or URI.")] = "lakehouse",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the spec to this file.")] = None,
) -> None:
    """Convert a DM task and its sources to a spec, and list the settings without a counterpart."""
    from dmdelta.config.from_dm import spec_from_dm

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
