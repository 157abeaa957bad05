"""A table's suite: what is expected of its columns, key and values. One YAML file per table."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dmdelta.config.section import Section


class ColumnContract(Section):
    """The expected type and nullability of a column."""

    type: str | None = None
    """Its type in Spark's notation: `bigint`, `decimal(10,2)`, `string`."""

    nullable: bool = True
    """Whether it may be NULL."""


class ExpectationConfig(Section):
    """One expectation, by its name in Great Expectations."""

    type: Annotated[str, Field(pattern=r"^(expect_|unexpected_)\w+$")]
    """Its name: `expect_column_values_to_be_between`."""

    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Its arguments by name: `{column: amount, min_value: 0}`."""

    on_failure: Literal["warn", "quarantine", "stop"] = "warn"
    """How a running task handles rows that fail. `warn`: log, count and record them. `quarantine`: write them to a
    quarantine table instead of silver. `stop`: stop the table before them; other tables continue."""


class ForeignKeyContract(Section):
    """Rows of another silver table that the rows of this one refer to. `dmdelta quality` looks for rows without one."""

    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns of this table. A row with a NULL in one of them refers to nothing, as in SQL."""

    references: Annotated[str, Field(pattern=r"^[^.]+\.[^.]+$")]
    """The other table by its name in silver: `shop.customers`."""

    referenced_columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """Its columns, in the order of `columns`."""

    @model_validator(mode="after")
    def _pairs(self) -> "ForeignKeyContract":
        if len(self.columns) != len(self.referenced_columns):
            raise ValueError("columns and referenced-columns need the same number of columns")
        return self


class SuiteConfig(Section):
    """The suite of one silver table."""

    columns: dict[str, ColumnContract] = Field(default_factory=dict)
    """Columns that the table must have, by name."""

    key: tuple[str, ...] | None = None
    """The columns of the key."""

    foreign_keys: tuple[ForeignKeyContract, ...] = ()
    """What rows refer to in other silver tables."""

    expectations: tuple[ExpectationConfig, ...] = ()
    """Further expectations."""
