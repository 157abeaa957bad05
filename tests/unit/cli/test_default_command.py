"""A group whose first command is the default."""

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from dmdelta.cli.default_command import DefaultCommandGroup

app = typer.Typer(cls=DefaultCommandGroup)


@app.callback()
def group() -> None:
    """A group."""


@app.command("now")
def now(spec: str, fast: Annotated[bool, typer.Option("--fast")] = False) -> None:  # noqa: FBT002
    """The first one."""
    print("now", spec, fast)


@app.command("status")
def status(spec: str) -> None:
    """Another one."""
    print("status", spec)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.yml", "--fast"], "now a.yml True"),
        (["--fast", "a.yml"], "now a.yml True"),
        (["now", "a.yml"], "now a.yml False"),
        (["status", "a.yml"], "status a.yml"),
        (["./status"], "now ./status False"),
    ],
)
def test_the_first_command_is_the_default(arguments, said):
    """Its arguments may come in any order."""
    assert CliRunner().invoke(app, arguments).output.strip() == said


def test_help_shows_the_group():
    """It lists all commands; without arguments, the first command reports what is missing."""
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "now" in shown
    assert "status" in shown
    assert "now" in CliRunner().invoke(app, []).output
