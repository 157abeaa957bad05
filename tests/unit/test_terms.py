"""Documents, help texts, messages and comments use the standard terms, not those of `tests/support/terms.py`."""

from pathlib import Path

import pytest

from tests.support.terms import TERMS, Text, avoided, code_texts, page_text

COVERED = tuple(sorted(place.name for place in Path("dmdelta").iterdir() if place.suffix == ".py" or place.is_dir()))
"""Members of `dmdelta/`: messages, help texts, docstrings and comments are checked in all of them."""
DOCUMENTS = [
    *sorted(Path().glob("*.md")),
    *sorted(Path("benchmarks").glob("*.md")),
    *sorted(Path("docs").rglob("*.md")),
    *sorted(Path("monitoring").glob("*.yml")),
    Path("Makefile"),
]


@pytest.mark.parametrize("page", DOCUMENTS, ids=str)
def test_a_document_uses_the_standard_terms(page):
    """No page has a term to avoid."""
    assert list(avoided(page_text(page))) == []


@pytest.mark.parametrize("member", COVERED)
def test_code_uses_the_standard_terms(member):
    """No message, help text, docstring or comment of a covered package has a term to avoid."""
    place = Path("dmdelta") / member
    modules = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert [found for module in modules for text in code_texts(module) for found in avoided(text)] == []


def test_a_term_to_avoid_is_found(tmp_path):
    """In prose, a docstring, a comment, a message and an f-string, with its line; not in code."""
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nA table stands still.\n`mend` is code.\n```\nfor ever\n```\nIt is kept\napart.\n")
    module = tmp_path / "module.py"
    module.write_text(
        '"""What is told."""\n\n# A table that is cared\n# for.\nraise ValueError(f"rows are kept apart: {1}", "all is well")\n'
    )
    found = [line for text in (page_text(page), *code_texts(module)) for line in avoided(text)]
    assert [line.removeprefix(f"{tmp_path}/").split(": use")[0] for line in found] == [
        "page.md:3: 'stands still'",
        "page.md:8: 'kept\\napart'",
        "module.py:1: 'is told'",
        "module.py:5: 'kept apart'",
        "module.py:3: 'is cared\\nfor'",
    ]


def test_only_the_newest_section_of_the_changelog_counts(tmp_path):
    """Older sections are history."""
    page = tmp_path / "CHANGELOG.md"
    page.write_text("# Changelog\n\n## Unreleased\n\nIt stands still.\n\n## 0.1.0\n\nThe task was begun anew.\n")
    assert [line.split("/")[-1] for line in avoided(page_text(page))] == [
        "CHANGELOG.md:5: 'stands still': use 'is paused, is idle'"
    ]


def test_the_replacement_is_not_a_term_to_avoid():
    """The list does not contradict itself."""
    assert [found for use in TERMS.values() for found in avoided(Text(Path("list"), 1, use))] == []
