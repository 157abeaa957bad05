"""What the pages say can be done: commands that there are, links that lead somewhere, an answer to each alert and error."""

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
    """What of a command line is neither a command nor one of its options; quoted values may be of several words."""
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
def test_a_page_tells_of_commands_that_there_are(page):
    """Each `dmdelta …` is a command, with options that it has."""
    wrong = {" ".join(words): unknown for words in told_commands(page) if (unknown := unknown_words(words))}
    assert wrong == {}


def test_a_command_that_is_not_there_is_found():
    """So the test above can fail."""
    assert unknown_words(["fly", "SPEC"]) == ["fly"]
    assert unknown_words(["binlog", "skip|fly", "SPEC"]) == ["fly"]
    assert unknown_words(["run", "SPEC", "--fly"]) == ["--fly"]
    assert unknown_words(["quality", "SPEC", "--fly"]) == ["--fly"]
    assert unknown_words(["validate", "task.yml", "--fly"]) == ["--fly"]
    assert unknown_words(["validate", "fly", "SPEC"]) == ["fly"]
    assert sum(len(told_commands(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    """To a file that there is, and to a heading of it."""
    for link in LINK.findall(page.read_text("utf-8")):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def anchors(page):
    """GitHub's names of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_runbook_answers_each_alert():
    """By a heading of its name, and no heading is of an alert that is gone."""
    rules = yaml.safe_load(Path("monitoring/dmdelta.rules.yml").read_text("utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    told = re.findall(r"^### (Dmdelta\w+)$", Path("docs/runbook.md").read_text("utf-8"), re.MULTILINE)
    assert told == alerts


def test_the_runbook_answers_each_error():
    """By its class and its exit code, in one line of the table."""
    table = re.findall(r"^\| (\d+) \| (.*?) \|", Path("docs/runbook.md").read_text("utf-8"), re.MULTILINE)
    told = {name: int(code) for code, names in table for name in re.findall(r"`(\w+)`", names)}
    errors = {
        name: EXIT_RETRIES_SPENT if issubclass(kind, Retryable) else kind.exit_code
        for name, kind in all_errors().items()
        if kind is not DmdeltaError
    }
    assert told == errors
