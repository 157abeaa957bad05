"""The documentation: existing commands, valid links, an entry in the runbook for each alert and error."""

import re
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml

from dmdelta.cli.main import app
from dmdelta.errors import EXIT_RETRIES_SPENT, DmdeltaError, Retryable, all_errors

PAGES = sorted([*Path().glob("*.md"), *Path("docs").rglob("*.md")])
COMMAND = re.compile(r"(?:^|`)(?:\.venv/bin/)?dmdelta ([a-z][^`\n#]*)", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


@cache
def commands():
    return typer.main.get_command(app)


def unknown_words(words):
    """The parts of a command line that are neither a command nor one of its options."""
    command = commands()
    while words and hasattr(command, "commands"):
        if hasattr(command, "default") and not re.fullmatch(r"[a-z|/\\-]+", words[0]):
            words = [command.default, *words]  # an argument of the command that needs no name
        named = re.split(r"[|/]", words[0].replace("\\", ""))
        unknown = [name for name in named if name not in command.commands]
        if unknown or len(named) > 1:
            return unknown
        command, words = command.commands[words[0]], words[1:]
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    return [word for word in words if word.startswith("-") and word not in options]


def told_commands(page):
    """The command lines of a page."""
    return [re.sub(r'"[^"]*"', "X", line).strip(" ).,;:").split() for line in COMMAND.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_uses_existing_commands(page):
    """Each `dmdelta …` is an existing command with existing options."""
    wrong = {" ".join(words): unknown for words in told_commands(page) if (unknown := unknown_words(words))}
    assert wrong == {}


def test_a_missing_command_is_detected():
    """So that the test above can fail."""
    assert unknown_words(["fly", "SPEC"]) == ["fly"]
    assert unknown_words(["binlog", "skip|fly", "SPEC"]) == ["fly"]
    assert unknown_words(["run", "SPEC", "--fly"]) == ["--fly"]
    assert unknown_words(["quality", "SPEC", "--fly"]) == ["--fly"]
    assert unknown_words(["validate", "task.yml", "--fly"]) == ["--fly"]
    assert unknown_words(["validate", "fly", "SPEC"]) == ["fly"]
    assert sum(len(told_commands(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_are_valid(page):
    """Each points to an existing file and heading."""
    for link in LINK.findall(page.read_text("utf-8")):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def anchors(page):
    """GitHub's anchors for a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_runbook_covers_each_alert():
    """With a heading of its name, and without headings of removed alerts."""
    rules = yaml.safe_load(Path("monitoring/dmdelta.rules.yml").read_text("utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    told = re.findall(r"^### (Dmdelta\w+)$", Path("docs/runbook.md").read_text("utf-8"), re.MULTILINE)
    assert told == alerts


def test_the_runbook_covers_each_error():
    """With its class and its exit code, in one row of the table."""
    table = re.findall(r"^\| (\d+) \| (.*?) \|", Path("docs/runbook.md").read_text("utf-8"), re.MULTILINE)
    told = {name: int(code) for code, names in table for name in re.findall(r"`(\w+)`", names)}
    errors = {
        name: EXIT_RETRIES_SPENT if issubclass(kind, Retryable) else kind.exit_code
        for name, kind in all_errors().items()
        if kind is not DmdeltaError
    }
    assert told == errors
