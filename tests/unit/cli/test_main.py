"""The command line: help, exit codes and error output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmdelta.cli import main as command_line
from dmdelta.cli.main import execute
from dmdelta.errors import CommitConflict, ConfigError, LakehouseError, SchemaError, SourceError, SourceUnavailable

COMMANDS = ["run", "check", "update", "status", "events", "checkpoint show", "checkpoint reset", "init"]
COMMANDS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "operate.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_documented(command, capsys):
    """`--help` works for each command, without Spark; docs/operate.md names it."""
    assert execute([*command.split(), "--help"]) == 0
    assert "Usage: " in capsys.readouterr().out
    assert f"`dmdelta {command}" in COMMANDS_PAGE.read_text(encoding="utf-8")


def test_a_shell_completes_commands():
    """The request that `dmdelta --install-completion` sends when a user presses Tab."""
    asked = {"_DMDELTA_COMPLETE": "complete_bash", "COMP_WORDS": "dmdelta ch", "COMP_CWORD": "1"}
    dmdelta = Path(sys.executable).with_name("dmdelta")
    shown = subprocess.run([dmdelta], env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert shown.stdout.split() == ["check", "checkpoint"]


def test_help_and_spec_errors_do_not_import_spark(tmp_path):
    """Help appears immediately, and spec errors appear before Spark starts."""
    script = (
        "import sys; from dmdelta.cli.main import execute; "
        f"codes = [execute(['--help']), execute(['run', {str(tmp_path / 'none.yml')!r}])]; "
        "sys.exit(f'{codes}' if codes != [0, 2] or 'pyspark' in sys.modules else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("command", ["run", "check", "status", "events", "checkpoint show", "checkpoint reset"])
def test_an_invalid_spec_exits_with_2_and_names_the_location(command, tmp_path, capsys):
    """Every command that takes a spec reports its errors on stderr, without a traceback."""
    path = tmp_path / "spec.yml"
    path.write_text("name: shop\nsorces: []\nlakehouse: {root: x}\n")
    assert execute([*command.split(), str(path)]) == 2
    shown = capsys.readouterr()
    assert f"{path}:2: unknown key 'sorces': did you mean 'sources'?" in shown.err
    assert "hint: docs/spec.md" in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (SourceError("x"), 3),
        (SchemaError("x"), 4),
        (LakehouseError("x"), 5),
        (SourceUnavailable("x"), 75),
        (CommitConflict("x"), 75),
        (KeyboardInterrupt(), 130),
    ],
)
def test_the_exit_code_depends_on_the_error_class(error, code, monkeypatch):
    """A retryable error that reaches the CLI has exhausted its retries."""

    def fail(args):
        raise error

    monkeypatch.setattr(command_line, "app", fail)
    assert execute(["run", "spec.yml"]) == code


def test_an_error_shows_its_facts_and_its_origin_only_with_debug(tmp_path, capsys):
    """--debug adds the traceback."""
    assert execute(["--debug", "status", str(tmp_path / "none.yml")]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_unknown_command_is_a_usage_error(capsys):
    """Typer's own exit code 2 and message."""
    assert execute(["frobnicate"]) == 2
    assert "No such command" in capsys.readouterr().err


def test_the_version_is_printed(capsys):
    """--version prints it and exits with 0."""
    assert execute(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dmdelta ")


@pytest.mark.parametrize(("arguments", "raises"), [(["--version"], False), (["frobnicate"], True)])
def test_main_raises_system_exit_only_for_failures(arguments, raises, monkeypatch, capsys):
    """A job runner that treats any SystemExit as a failure sees none after success."""
    monkeypatch.setattr(sys, "argv", ["dmdelta", *arguments])
    if raises:
        with pytest.raises(SystemExit):
            command_line.main()
    else:
        command_line.main()
    assert capsys.readouterr()
