"""Section `filters`: which row events and DDL statements of a table are replicated."""

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
        raise ValueError(f"{name!r} is not an event name" + (f": did you mean {near[0]!r}?" if near else ""))
    return event


EventName = Annotated[str, Field(min_length=1), AfterValidator(_known)]


class FilterRule(Section):
    """DM's binlog event filter: which events of the matching tables are replicated.

    The first entry of `events` that covers an event decides whether the event matches; a statement can also match by
    `sql-pattern`. With `Do`, an event that `events` does not match, or a statement that a configured `sql-pattern` does
    not match, is skipped. With `Ignore` and `Error` one of the two matches is enough. `Ignore` of any rule takes
    precedence over `Error`.
    """

    schema_pattern: Pattern
    """Pattern for the schema name: `*`, `?`, `[a-z]` are wildcards, `~` starts a regular expression."""

    table_pattern: Pattern | None = None
    """Pattern for the table name; without it the rule applies to all tables of the schema and to the schema itself."""

    events: tuple[EventName, ...] = ()
    """Event names: `insert`, `update`, `delete`, `create table`, `drop column` and so on, and groups of them: `all`,
    `all dml`, `all ddl`, `none`, `none dml`, `none ddl`, `incompatible ddl changes`. `none` excludes the events that it
    covers."""

    sql_pattern: tuple[RegularExpression, ...] = ()
    """Regular expressions matched against the text of DDL statements, case-insensitively; one match is enough."""

    action: Literal["Do", "Ignore", "Error"]
    """`Do`: replicate only what matches. `Ignore`: skip what matches. `Error`: stop the table, and the sink, at what
    matches."""
