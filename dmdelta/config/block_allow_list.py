"""Section `block-allow-list`: which schemas and tables take part."""

from typing import Annotated

from pydantic import AfterValidator

from dmdelta.config.patterns import Pattern
from dmdelta.config.section import Section
from dmdelta.model.schema import SYSTEM_SCHEMAS


def _not_a_system_schema(pattern: str) -> str:
    if pattern.lower() in SYSTEM_SCHEMAS:
        raise ValueError(f"{pattern!r} is a schema of the server itself and never takes part")
    return pattern


SchemaPattern = Annotated[Pattern, AfterValidator(_not_a_system_schema)]


class TablePattern(Section):
    """Tables by the patterns of their schema and name."""

    db_name: Pattern
    """Pattern of the schema's name."""

    tbl_name: Pattern
    """Pattern of the table's name."""


class BlockAllowListConfig(Section):
    """DM's block and allow list; an empty one lets everything through but the server's own schemas."""

    do_dbs: tuple[SchemaPattern, ...] = ()
    """Only these schemas take part. `~` starts a regular expression; `*`, `?`, `[a-z]` are wildcards."""

    ignore_dbs: tuple[Pattern, ...] = ()
    """These schemas do not take part; read only when `do-dbs` is empty."""

    do_tables: tuple[TablePattern, ...] = ()
    """Only these tables of the remaining schemas take part."""

    ignore_tables: tuple[TablePattern, ...] = ()
    """These tables do not take part; read only when `do-tables` is empty."""
