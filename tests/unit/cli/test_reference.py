"""docs/cli.md and docs/operate.md against the commands themselves."""

import re
from pathlib import Path

from dmdelta.cli.reference import cli_reference

HEADING = re.compile(r"^## `dmdelta ([a-z-]+(?: [a-z-]+)?)", re.MULTILINE)


def test_the_page_is_current():
    """docs/cli.md is what `python -m dmdelta.cli.reference` prints."""
    assert Path("docs/cli.md").read_text(encoding="utf-8") == cli_reference()


def test_every_command_says_what_it_is_for_and_what_its_parameters_mean():
    """No empty line of help, no empty cell."""
    page = cli_reference()
    commands = re.split(r"^## `dmdelta ", page, flags=re.MULTILINE)[1:]
    assert len(commands) >= 20
    for command in commands:
        assert re.match(r"[^\n]+`\n\n[A-Z][^\n]+\n", command), command
        assert "|  |" not in command, command


def test_the_page_by_task_has_every_command():
    """By its name, or by that of its group."""
    page = Path("docs/operate.md").read_text(encoding="utf-8")
    names = {name.split(" ")[0] for name in HEADING.findall(cli_reference())}
    missing = [name for name in names if not re.search(rf"dmdelta {name}\b|`{name}`", page)]
    assert missing == []
