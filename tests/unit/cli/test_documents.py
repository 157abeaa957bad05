"""The documents match the code: their commands exist, their links resolve, and the runbook covers each alert and error."""

import ast
import re
from functools import cache
from pathlib import Path

import importlinter.api
import pytest
import typer
import yaml

from dmdelta.cli.main import app
from dmdelta.engine.apply.table_state import TRANSITIONS
from dmdelta.errors import EXIT_RETRIES_SPENT, DmdeltaError, Retryable, all_errors

PAGES = sorted([*Path().glob("*.md"), *Path("docs").rglob("*.md")])
BLOCK = re.compile(r"^ *```[a-z]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
BLOCK_COMMAND = re.compile(r"^ *(?:\.venv/bin/)?dmdelta ([a-z][^`\n#]*)", re.MULTILINE)
INLINE_COMMAND = re.compile(r"`(?:\.venv/bin/)?dmdelta ([a-z][^`\n#]*)")
NAMED_FILE = re.compile(r"`([\w.-]+/[\w./-]+\.(?:py|yml|md|txt|json|lock))`")
SUMMARY = re.compile(r"^\*\*In one line:\*\* (.*)$", re.MULTILINE)
USER_FILES = ("task/", "pipelines/my.yml")
"""Files that the reader creates."""
CALL = re.compile(r"^\| \d+ \| `([\w/]+\.py)`: ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)
"""A row of ARCHITECTURE.md's table of calls: a module and its functions."""
PHASE = re.compile(r"^\| ([A-Z]+) \| .* \| ([A-Z, ]+) \|$", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


@cache
def commands():
    return typer.main.get_command(app)


def unknown_words(words):
    """The words of a command line that are neither commands nor their options."""
    command = commands()
    while words and hasattr(command, "commands"):
        if hasattr(command, "default") and not re.fullmatch(r"[a-z|/\\-]+", words[0]):
            words = [command.default, *words]  # an argument of the group's default command
        named = re.split(r"[|/]", words[0].replace("\\", ""))
        unknown = [name for name in named if name not in command.commands]
        if unknown or len(named) > 1:
            return unknown
        command, words = command.commands[words[0]], words[1:]
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    return [word for word in words if word.startswith("-") and word not in options]


def shown_commands(page):
    """The command lines of a page, in code blocks and in inline code."""
    text = page.read_text("utf-8")
    found = [line for block in BLOCK.findall(text) for line in BLOCK_COMMAND.findall(block)]
    found += INLINE_COMMAND.findall(BLOCK.sub("", text))
    return [re.sub(r'"[^"]*"', "X", line).strip(" ).,;:").split() for line in found]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_shows_existing_commands_only(page):
    """Each `dmdelta …` is a command with options that it has."""
    wrong = {" ".join(words): unknown for words in shown_commands(page) if (unknown := unknown_words(words))}
    assert wrong == {}


def test_an_unknown_command_is_found():
    """The test above can fail."""
    assert unknown_words(["fly", "SPEC"]) == ["fly"]
    assert unknown_words(["binlog", "skip|fly", "SPEC"]) == ["fly"]
    assert unknown_words(["run", "SPEC", "--fly"]) == ["--fly"]
    assert unknown_words(["quality", "SPEC", "--fly"]) == ["--fly"]
    assert unknown_words(["validate", "task.yml", "--fly"]) == ["--fly"]
    assert unknown_words(["validate", "fly", "SPEC"]) == ["fly"]
    assert sum(len(shown_commands(page)) for page in PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_resolve(page):
    """Each link leads to an existing file and to a heading in it."""
    for link in LINK.findall(page.read_text("utf-8")):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_named_files_exist(page):
    """A file that a page names exists, below the repository or below dmdelta/."""
    named = NAMED_FILE.findall(page.read_text("utf-8"))
    missing = [name for name in named if not Path(name).exists() and not Path("dmdelta", name).exists()]
    assert [name for name in missing if not name.startswith(USER_FILES)] == []


def test_the_calls_of_the_architecture_exist():
    """Each function of the path of a row is defined in its module; the path has at most 15 calls and 10 modules."""
    page = Path("ARCHITECTURE.md").read_text("utf-8")
    calls = [(module, name) for module, names in CALL.findall(page) for name in NAME.findall(names)]
    assert [call for call in calls if call[1] not in functions(Path("dmdelta", call[0]))] == []
    assert 10 <= len(CALL.findall(page)) <= 15
    assert len({module for module, _ in calls}) <= 10


def functions(module):
    """The functions and methods that a module defines."""
    tree = ast.parse(module.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_phases_of_the_architecture_are_those_of_the_scheduler():
    """ARCHITECTURE.md shows each phase of a table with the phases that can follow."""
    page = Path("ARCHITECTURE.md").read_text("utf-8")
    shown = {phase: set(following.split(", ")) for phase, following in PHASE.findall(page)}
    assert shown == {phase.name: {each.name for each in following} for phase, following in TRANSITIONS.items()}


@pytest.mark.parametrize("package", ["engine", "silver", "source", "sink", "binlog", "ddl"])
def test_the_ladders_of_the_architecture_are_those_that_are_checked(package):
    """ARCHITECTURE.md shows the layers inside a package as import-linter checks them."""
    contracts = importlinter.api.read_configuration("pyproject.toml")["contracts_options"]
    layers = next(one["layers"] for one in contracts if one.get("containers") == [f"dmdelta.{package}"])
    ladder = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ".join(
        ", ".join(f"`{name}`" for name in layer.split(" | ")) for layer in layers
    )
    assert ladder in Path("ARCHITECTURE.md").read_text("utf-8")


def anchors(page):
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_has_every_page():
    """docs/README.md links to each page, and shows each decision record's summary."""
    index = Path("docs/README.md").read_text("utf-8")
    pages = [page for page in Path("docs").rglob("*.md") if page.name != "README.md"]
    assert [str(page) for page in pages if f"({page.relative_to('docs')})" not in index] == []
    records = sorted(Path("docs/decisions").glob("*.md"))
    summaries = [SUMMARY.search(record.read_text("utf-8"))[1] for record in records]
    assert [summary for summary in summaries if summary[1:] not in index] == []


def test_the_readme_is_short():
    """At most 120 lines: details are in docs/."""
    assert len(Path("README.md").read_text("utf-8").splitlines()) <= 120


def test_the_runbook_covers_each_alert():
    """The alert headings are the alerts of the rules, in their order."""
    rules = yaml.safe_load(Path("monitoring/dmdelta.rules.yml").read_text("utf-8"))
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    covered = re.findall(r"^### (Dmdelta\w+)$", Path("docs/runbook.md").read_text("utf-8"), re.MULTILINE)
    assert covered == alerts


def test_the_runbook_covers_each_error():
    """The table has each error class with its exit code."""
    table = re.findall(r"^\| (\d+) \| (.*?) \|", Path("docs/runbook.md").read_text("utf-8"), re.MULTILINE)
    covered = {name: int(code) for code, names in table for name in re.findall(r"`(\w+)`", names)}
    errors = {
        name: EXIT_RETRIES_SPENT if issubclass(kind, Retryable) else kind.exit_code
        for name, kind in all_errors().items()
        if kind is not DmdeltaError
    }
    assert covered == errors
