"""Name patterns and regular expressions used in rules, each compiled when the spec is loaded."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field


def _compilable(pattern: str) -> str:
    if pattern.startswith("~"):
        _compiled(pattern[1:], pattern)
    return pattern


def _regular(pattern: str) -> str:
    _compiled(pattern, pattern)
    return pattern


def _with_one_group(pattern: str) -> str:
    groups = _compiled(pattern, pattern).groups
    if groups != 1:
        raise ValueError(
            f"{pattern!r} has {groups} groups; it must have exactly one, which captures the real table's name"
        )
    return pattern


def _compiled(expression: str, shown: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise ValueError(f"{shown!r} is not a regular expression: {error}") from error


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_compilable)]
"""A name, with the wildcards `*`, `?` and `[a-z]`; a leading `~` marks a regular expression."""

RegularExpression = Annotated[str, Field(min_length=1), AfterValidator(_regular)]
"""A regular expression, which matches anywhere unless it is anchored."""

NameExpression = Annotated[str, Field(min_length=1), AfterValidator(_with_one_group)]
"""A regular expression with one group, which captures the real table's name."""
