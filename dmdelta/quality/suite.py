"""The suites of a folder: what is expected of which silver table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dmdelta.config import ExpectationConfig, SuiteConfig, load_suite
from dmdelta.errors import ConfigError
from dmdelta.model.schema import ForeignKey, TableName

ROW_WISE = frozenset(
    {
        "expect_column_values_to_be_null",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_not_match_regex_list",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_pair_values_to_be_equal",
        "expect_column_pair_values_to_be_in_set",
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_multicolumn_sum_to_equal",
        "expect_multicolumn_values_to_be_equal",
        "expect_select_column_values_to_be_unique_within_record",
    }
)
"""Expectations that judge a row by itself, as one expression of Spark's. A running task judges these alone: others need
a whole table, or Python for each row."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation of a table.

    Attributes:
        place: the file and line it is written at.
    """

    config: ExpectationConfig
    place: str

    @property
    def is_row_wise(self) -> bool:
        return self.config.type in ROW_WISE and "mostly" not in self.config.kwargs

    def __str__(self) -> str:
        """As results name it: `expect_column_values_to_be_between(column=amount, min_value=0)`."""
        arguments = ", ".join(f"{name}={value}" for name, value in self.config.kwargs.items())
        return f"{self.config.type}({arguments})"


@dataclass(frozen=True, slots=True)
class Suite:
    """What is expected of a silver table."""

    contract: SuiteConfig = field(default_factory=SuiteConfig)
    expectations: tuple[Expectation, ...] = ()

    @property
    def row_wise(self) -> tuple[Expectation, ...]:
        """Those that a running task judges."""
        return tuple(expectation for expectation in self.expectations if expectation.is_row_wise)

    def foreign_keys(self, table: TableName) -> tuple[ForeignKey, ...]:
        """The contract's, of a silver table; the parents are silver tables, too."""
        found = []
        for key in self.contract.foreign_keys:
            schema, _, parent = key.references.partition(".")
            name = f"({', '.join(key.columns)}) references {key.references} ({', '.join(key.referenced_columns)})"
            columns = tuple(zip(key.columns, key.referenced_columns, strict=True))
            found.append(ForeignKey(name, table, (schema, parent), columns))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Suites:
    """The suites of a task, by (schema, table) in silver."""

    by_table: Mapping[TableName, Suite] = field(default_factory=dict)

    def of(self, table: TableName) -> Suite:
        return self.by_table.get(table, Suite())

    def guards(self, table: TableName) -> bool:
        """A running task judges the table's rows."""
        return bool(self.of(table).row_wise)


def load_suites(folder: Path) -> Suites:
    """Read `<schema>/<table>.yml` of a folder.

    Raises:
        ConfigError: the folder is not there or has no suite, or one of them is wrong: with file, line and key.
    """
    files = sorted(folder.glob("*/*.yml"))
    if not files:
        raise ConfigError(f"no suite in {folder}", hint="write one as <schema>/<table>.yml, or correct quality.schemas")
    return Suites({(file.parent.name, file.stem): _suite(file) for file in files})


def _suite(file: Path) -> Suite:
    contract, document = load_suite(file)
    found = []
    for number, config in enumerate(contract.expectations):
        place = f"{file}:{document.line_of(('expectations', number))}"
        expectation = Expectation(config, place)
        if config.on_failure != "warn" and not expectation.is_row_wise:
            raise ConfigError(
                f"{place}: {config.type} does not judge a row by itself, so that on-failure can only be warn",
                hint="docs/quality.md lists those that do; mostly is for what warns",
            )
        found.append(expectation)
    return Suite(contract, tuple(found))
