"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The task's YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one document.")]
