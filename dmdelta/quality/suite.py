"""Loads the suites of a folder: the expectations of each silver table."""

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
"""Expectations on single rows, as one Spark expression. A running task evaluates only these: others require the whole
table, or Python code for each row."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation of a table.

    Attributes:
        place: its file and line.
    """

    config: ExpectationConfig
    place: str

    @property
    def is_row_wise(self) -> bool:
        return self.config.type in ROW_WISE and "mostly" not in self.config.kwargs

    def __str__(self) -> str:
        """Its name in results: `expect_column_values_to_be_between(column=amount, min_value=0)`."""
        arguments = ", ".join(f"{name}={value}" for name, value in self.config.kwargs.items())
        return f"{self.config.type}({arguments})"


@dataclass(frozen=True, slots=True)
class Suite:
    """The contract and the expectations of a silver table."""

    contract: SuiteConfig = field(default_factory=SuiteConfig)
    expectations: tuple[Expectation, ...] = ()

    @property
    def row_wise(self) -> tuple[Expectation, ...]:
        """The expectations that a running task evaluates."""
        return tuple(expectation for expectation in self.expectations if expectation.is_row_wise)

    def foreign_keys(self, table: TableName) -> tuple[ForeignKey, ...]:
        """The contract's foreign keys of a silver table; the parents are silver tables, too."""
        keys = []
        for key in self.contract.foreign_keys:
            schema, _, parent = key.references.partition(".")
            name = f"({', '.join(key.columns)}) references {key.references} ({', '.join(key.referenced_columns)})"
            columns = tuple(zip(key.columns, key.referenced_columns, strict=True))
            keys.append(ForeignKey(name, table, (schema, parent), columns))
        return tuple(keys)


@dataclass(frozen=True, slots=True)
class Suites:
    """The suites of a task, by (schema, table) in silver."""

    by_table: Mapping[TableName, Suite] = field(default_factory=dict)

    def of(self, table: TableName) -> Suite:
        return self.by_table.get(table, Suite())

    def guards(self, table: TableName) -> bool:
        """Whether a running task evaluates the table's rows."""
        return bool(self.of(table).row_wise)


def load_suites(folder: Path) -> Suites:
    """Read `<schema>/<table>.yml` of a folder.

    Raises:
        ConfigError: the folder does not exist or has no suite, or a suite is invalid: with file, line and key.
    """
    files = sorted(folder.glob("*/*.yml"))
    if not files:
        raise ConfigError(
            f"no suite in {folder}", hint="create one as <schema>/<table>.yml, or correct quality.schemas"
        )
    return Suites({(file.parent.name, file.stem): _suite(file) for file in files})


def _suite(file: Path) -> Suite:
    contract, document = load_suite(file)
    expectations = []
    for number, config in enumerate(contract.expectations):
        place = f"{file}:{document.line_of(('expectations', number))}"
        expectation = Expectation(config, place)
        if config.on_failure != "warn" and not expectation.is_row_wise:
            raise ConfigError(
                f"{place}: {config.type} does not evaluate single rows: on-failure must be warn",
                hint="docs/quality.md lists the expectations on single rows; those with `mostly` can only warn",
            )
        expectations.append(expectation)
    return Suite(contract, tuple(expectations))
