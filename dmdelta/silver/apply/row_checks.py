"""Row expectations as the applier evaluates them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column

from dmdelta.model.schema import TableSchema
from dmdelta.silver.table.target import Target


class OnFailure(str, Enum):
    """The action for rows that fail."""

    WARN = "warn"
    QUARANTINE = "quarantine"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One expectation of each row.

    Attributes:
        name: the name of the expectation, as in the suite.
        failing: true for a row of silver that fails; never NULL.
    """

    name: str
    failing: Column
    on_failure: OnFailure = OnFailure.WARN


RowChecks = Callable[[Target, TableSchema], Sequence[RowCheck]]
"""The expectations of a table's rows, given its structure in silver."""


def no_checks(target: Target, schema: TableSchema) -> Sequence[RowCheck]:  # noqa: ARG001 - the signature of RowChecks
    """No expectations, and no quarantine: the rows are only read, or go to another table."""
    return ()
