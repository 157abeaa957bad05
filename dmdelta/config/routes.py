"""Section `routes`: which silver table a source table goes to."""

from typing import Annotated

from pydantic import Field, model_validator

from dmdelta.config.patterns import Pattern, RegularExpression
from dmdelta.config.section import Section

Name = Annotated[str, Field(min_length=1, max_length=64)]


class ExtractTable(Section):
    """A constant column from the source table's name."""

    table_regexp: RegularExpression
    """Regular expression; what its groups match in the table's name, joined, is the value: '' for no match."""

    target_column: Name
    """Name of the column in silver."""


class ExtractSchema(Section):
    """A constant column from the source schema's name."""

    schema_regexp: RegularExpression
    """Regular expression; what its groups match in the schema's name, joined, is the value: '' for no match."""

    target_column: Name
    """Name of the column in silver."""


class ExtractSource(Section):
    """A constant column from the `source-id`."""

    source_regexp: RegularExpression
    """Regular expression; what its groups match in the `source-id`, joined, is the value: '' for no match."""

    target_column: Name
    """Name of the column in silver."""


class RouteRule(Section):
    """The tables that a rule is for, and the silver table that they go to: many tables may go to one.

    A rule with `table-pattern` goes before those without. A table that two rules of the same kind match is an error.
    """

    schema_pattern: Pattern
    """Pattern of the schema's name: `*`, `?`, `[a-z]` are wildcards, `~` starts a regular expression."""

    table_pattern: Pattern | None = None
    """Pattern of the table's name; without it the rule is for every table of the schema."""

    target_schema: Name
    """Schema of the silver table."""

    target_table: Name | None = None
    """Name of the silver table; the source table's own without it."""

    extract_table: ExtractTable | None = None
    """A constant column from the source table's name."""

    extract_schema: ExtractSchema | None = None
    """A constant column from the source schema's name."""

    extract_source: ExtractSource | None = None
    """A constant column from the `source-id`."""

    @model_validator(mode="after")
    def _columns_differ(self) -> "RouteRule":
        extracts = (self.extract_table, self.extract_schema, self.extract_source)
        names = [extract.target_column.lower() for extract in extracts if extract is not None]
        if len(set(names)) < len(names):
            raise ValueError("two extracts of a rule have the same target-column")
        if any(name.startswith("_dm_") for name in names):
            raise ValueError("target-column begins with _dm_, as the columns do that silver keeps for itself")
        return self
