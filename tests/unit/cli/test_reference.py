"""docs/cli.md and README.md against the commands themselves."""

import re
from pathlib import Path

from dmdelta.cli.reference import cli_reference

HEADING = re.compile(r"^## `dmdelta ([a-z-]+(?: [a-z-]+)?)", re.MULTILINE)


def test_the_page_is_current():
    """docs/cli.md equals the output of `python -m dmdelta.cli.reference`."""
    assert Path("docs/cli.md").read_text(encoding="utf-8") == cli_reference()


def test_every_command_and_parameter_has_help():
    """No help text and no table cell is empty."""
    page = cli_reference()
    commands = re.split(r"^## `dmdelta ", page, flags=re.MULTILINE)[1:]
    assert len(commands) >= 20
    for command in commands:
        assert re.match(r"[^\n]+`\n\n[A-Z][^\n]+\n", command), command
        assert "|  |" not in command, command


def test_readme_has_every_command():
    """With its name, or with that of its group."""
    readme = Path("README.md").read_text(encoding="utf-8")
    names = {name.split(" ")[0] for name in HEADING.findall(cli_reference())}
    missing = [name for name in names if not re.search(rf"dmdelta {name}\b|`{name}`", readme)]
    assert missing == []
