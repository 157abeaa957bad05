"""Name patterns: a name with `*`, `?`, `[a-z]`, `[!a-z]`, or after `~` a regular expression that is searched for."""

import fnmatch
import re
from collections.abc import Iterable
from functools import cache
from typing import Protocol, TypeVar

from dmdelta.model.schema import TableName


class TableRule(Protocol):
    """A rule for the tables that match its patterns; None for the table: every table of the schema."""

    @property
    def schema_pattern(self) -> str: ...
    @property
    def table_pattern(self) -> str | None: ...


Rule = TypeVar("Rule", bound=TableRule)


def matches(pattern: str, name: str, *, case_sensitive: bool) -> bool:
    """Whether a name matches a pattern of the spec."""
    return _compiled(pattern, case_sensitive=case_sensitive).search(name) is not None


def matches_table(patterns: tuple[str, str | None], name: TableName, *, case_sensitive: bool) -> bool:
    """Whether a table matches the patterns of its schema and of its name; None: every table of the schema does."""
    for_schema, for_table = patterns
    schema, table = name
    return matches(for_schema, schema, case_sensitive=case_sensitive) and (
        for_table is None or matches(for_table, table, case_sensitive=case_sensitive)
    )


def rules_for(name: TableName, rules: Iterable[Rule], *, case_sensitive: bool) -> list[Rule]:
    """The rules for a table."""
    patterns = ((rule, (rule.schema_pattern, rule.table_pattern)) for rule in rules)
    return [rule for rule, both in patterns if matches_table(both, name, case_sensitive=case_sensitive)]


def is_exact(pattern: str) -> bool:
    """Whether a pattern matches a single name only."""
    return not pattern.startswith("~") and not set(pattern) & set("*?[")


def matches_grant(database: str, schema: str) -> bool:
    """Whether a GRANT on `database`, a name or a pattern with % and _, includes a schema."""
    parts = re.findall(r"\\.|.", database, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    text = "".join(re.escape(one[1]) if one[0] == "\\" and one[1:] else wild.get(one, re.escape(one)) for one in parts)
    return re.fullmatch(text, schema, re.DOTALL) is not None


@cache
def _compiled(pattern: str, *, case_sensitive: bool) -> re.Pattern[str]:
    text = pattern[1:] if pattern.startswith("~") else r"\A" + fnmatch.translate(pattern)
    return re.compile(text, 0 if case_sensitive else re.IGNORECASE)


@cache
def regular_expression(text: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression validated with the spec, compiled once per process: rules are serialized as text."""
    return re.compile(text, flags)
