"""Section `routes`: which silver table a source table is routed to."""

from typing import Annotated

from pydantic import Field, model_validator

from dmdelta.config.patterns import Pattern, RegularExpression
from dmdelta.config.section import Section

Name = Annotated[str, Field(min_length=1, max_length=64)]


class ExtractTable(Section):
    """A constant column extracted from the source table's name."""

    table_regexp: RegularExpression
    """Regular expression; the value is the concatenation of what its groups match in the table's name: '' for no match.
    """

    target_column: Name
    """Name of the column in silver."""


class ExtractSchema(Section):
    """A constant column extracted from the source schema's name."""

    schema_regexp: RegularExpression
    """Regular expression; the value is the concatenation of what its groups match in the schema's name: '' for no
    match."""

    target_column: Name
    """Name of the column in silver."""


class ExtractSource(Section):
    """A constant column extracted from the `source-id`."""

    source_regexp: RegularExpression
    """Regular expression; the value is the concatenation of what its groups match in the `source-id`: '' for no match.
    """

    target_column: Name
    """Name of the column in silver."""


class RouteRule(Section):
    """The tables that a rule matches, and the silver table that they are routed to; many tables can share one.

    A rule with `table-pattern` takes precedence over rules without. A table that two rules of the same kind match is an
    error.
    """

    schema_pattern: Pattern
    """Pattern for the schema name: `*`, `?`, `[a-z]` are wildcards, `~` starts a regular expression."""

    table_pattern: Pattern | None = None
    """Pattern for the table name; without it the rule applies to all tables of the schema."""

    target_schema: Name
    """Schema of the silver table."""

    target_table: Name | None = None
    """Name of the silver table; by default that of the source table."""

    extract_table: ExtractTable | None = None
    """A constant column extracted from the source table's name."""

    extract_schema: ExtractSchema | None = None
    """A constant column extracted from the source schema's name."""

    extract_source: ExtractSource | None = None
    """A constant column extracted from the `source-id`."""

    @model_validator(mode="after")
    def _columns_differ(self) -> "RouteRule":
        extracts = (self.extract_table, self.extract_schema, self.extract_source)
        names = [extract.target_column.lower() for extract in extracts if extract is not None]
        if len(set(names)) < len(names):
            raise ValueError("two extracts of a rule have the same target-column")
        if any(name.startswith("_dm_") for name in names):
            raise ValueError("target-column must not start with _dm_, which is reserved for silver's own columns")
        return self
