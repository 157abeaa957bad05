"""Section `filters`: which row events and DDL statements of a table count."""

import difflib
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dmdelta.config.patterns import Pattern, RegularExpression
from dmdelta.config.section import Section
from dmdelta.model.events import ALIASES, EVENT_NAMES


def _known(name: str) -> str:
    plain = " ".join(name.lower().split())
    event = ALIASES.get(plain, plain)
    if event not in EVENT_NAMES:
        near = difflib.get_close_matches(plain, [*EVENT_NAMES, *ALIASES], n=1)
        raise ValueError(f"{name!r} is no event" + (f": did you mean {near[0]!r}?" if near else ""))
    return event


EventName = Annotated[str, Field(min_length=1), AfterValidator(_known)]


class FilterRule(Section):
    """DM's binlog event filter: which events of the tables that it matches count.

    An event is matched by the first of `events` that says something about it; a statement also by `sql-pattern`. With
    `Do` an event that `events` do not match, or a statement that `sql-pattern` is given for and does not match, is left
    out. With `Ignore` and `Error` one of the two matches is enough. `Ignore` of any rule goes before `Error`.
    """

    schema_pattern: Pattern
    """Pattern of the schema's name: `*`, `?`, `[a-z]` are wildcards, `~` starts a regular expression."""

    table_pattern: Pattern | None = None
    """Pattern of the table's name; without it the rule is for every table of the schema, and the schema itself."""

    events: tuple[EventName, ...] = ()
    """Names of events: `insert`, `update`, `delete`, `create table`, `drop column` and so on, and of groups of them:
    `all`, `all dml`, `all ddl`, `none`, `none dml`, `none ddl`, `incompatible ddl changes`. `none` ends the list for
    what it names."""

    sql_pattern: tuple[RegularExpression, ...] = ()
    """Regular expressions over the text of DDL statements; case does not count, one match is enough."""

    action: Literal["Do", "Ignore", "Error"]
    """`Do`: only what matches counts. `Ignore`: what matches is left out. `Error`: what matches stops the task."""
