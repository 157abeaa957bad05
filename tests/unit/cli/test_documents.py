"""The documents match the code: their commands exist, their links resolve, and the runbook covers each alert and error."""

import re
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml

from dmdelta.cli.main import app
from dmdelta.errors import EXIT_RETRIES_SPENT, DmdeltaError, Retryable, all_errors

PAGES = sorted([*Path().glob("*.md"), *Path("docs").rglob("*.md")])
BLOCK = re.compile(r"^ *```[a-z]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
BLOCK_COMMAND = re.compile(r"^ *(?:\.venv/bin/)?dmdelta ([a-z][^`\n#]*)", re.MULTILINE)
INLINE_COMMAND = re.compile(r"`(?:\.venv/bin/)?dmdelta ([a-z][^`\n#]*)")
NAMED_FILE = re.compile(r"`([\w.-]+/[\w./-]+\.(?:py|yml|md|txt|json|lock))`")
SUMMARY = re.compile(r"^\*\*In one line:\*\* (.*)$", re.MULTILINE)
TO_COME = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs/decisions/0008-replay.md",
    "docs/decisions/0009-reconciliation.md",
    "docs/decisions/0010-expectations.md",
)
"""Pages that name modules of the layout and of the replay to come, and the changelog, which is history."""
USER_FILES = ("task/", "pipelines/my.yml", "schemas/")
"""Files of a reader's own, and contracts to come."""
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


@pytest.mark.parametrize("page", [page for page in PAGES if str(page) not in TO_COME], ids=str)
def test_named_files_exist(page):
    """A file that a page names exists, below the repository or below dmdelta/."""
    named = NAMED_FILE.findall(page.read_text("utf-8"))
    missing = [name for name in named if not Path(name).exists() and not Path("dmdelta", name).exists()]
    assert [name for name in missing if not name.startswith(USER_FILES)] == []


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
