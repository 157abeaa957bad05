"""Section `block-allow-list`: which schemas and tables are replicated."""

from typing import Annotated

from pydantic import AfterValidator

from dmdelta.config.patterns import Pattern
from dmdelta.config.section import Section
from dmdelta.model.schema import SYSTEM_SCHEMAS


def _not_a_system_schema(pattern: str) -> str:
    if pattern.lower() in SYSTEM_SCHEMAS:
        raise ValueError(f"{pattern!r} is a system schema of the server and is never replicated")
    return pattern


SchemaPattern = Annotated[Pattern, AfterValidator(_not_a_system_schema)]


class TablePattern(Section):
    """Tables selected by patterns for schema and table name."""

    db_name: Pattern
    """Pattern for the schema name."""

    tbl_name: Pattern
    """Pattern for the table name."""


class BlockAllowListConfig(Section):
    """DM's block and allow list; an empty list selects everything except the server's system schemas."""

    do_dbs: tuple[SchemaPattern, ...] = ()
    """Replicate only these schemas. `~` starts a regular expression; `*`, `?`, `[a-z]` are wildcards."""

    ignore_dbs: tuple[Pattern, ...] = ()
    """Do not replicate these schemas; ignored if `do-dbs` is set."""

    do_tables: tuple[TablePattern, ...] = ()
    """Replicate only these tables of the selected schemas."""

    ignore_tables: tuple[TablePattern, ...] = ()
    """Do not replicate these tables; ignored if `do-tables` is set."""
