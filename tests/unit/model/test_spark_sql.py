"""Quoting for Spark SQL."""

import pytest

from dmdelta.model.spark_sql import literal, quote


@pytest.mark.parametrize(("name", "quoted"), [("a", "`a`"), ("a`b", "`a``b`"), ("a.b c", "`a.b c`"), ("", "``")])
def test_an_identifier_is_quoted(name: str, quoted: str) -> None:
    """Backticks are doubled."""
    assert quote(name) == quoted


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", "'a'"),
        ("", "''"),
        ("it's", "'it\\'s'"),
        ("a\\b", "'a\\\\b'"),
        ("\\'", "'\\\\\\''"),
        ("${env:HOME} {x}", "'$\\u007Benv:HOME} \\u007Bx}'"),
    ],
)
def test_a_string_is_quoted(text: str, quoted: str) -> None:
    """Nothing in it ends the literal or begins a variable."""
    assert literal(text) == quoted
