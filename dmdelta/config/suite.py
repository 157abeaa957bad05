"""A table's suite: what its columns, its key and its values should be. One YAML file a table."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dmdelta.config.section import Section


class ColumnContract(Section):
    """What a column should be."""

    type: str | None = None
    """Its type as Spark writes it: `bigint`, `decimal(10,2)`, `string`."""

    nullable: bool = True
    """Whether it may be NULL."""


class ExpectationConfig(Section):
    """One expectation, by its name in Great Expectations."""

    type: Annotated[str, Field(pattern=r"^(expect_|unexpected_)\w+$")]
    """Its name: `expect_column_values_to_be_between`."""

    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Its arguments by their names: `{column: amount, min_value: 0}`."""

    on_failure: Literal["warn", "quarantine", "stop"] = "warn"
    """What a running task does about rows that fail. `warn`: log, count and record them. `quarantine`: keep them out of
    silver, in a table of their own. `stop`: stop the table ahead of them; the others go on."""


class SuiteConfig(Section):
    """The suite of one silver table."""

    columns: dict[str, ColumnContract] = Field(default_factory=dict)
    """Columns that should be there, by name."""

    key: tuple[str, ...] | None = None
    """The columns of the key."""

    expectations: tuple[ExpectationConfig, ...] = ()
    """What else is expected."""
