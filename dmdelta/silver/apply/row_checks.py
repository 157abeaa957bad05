"""What the rows of a table should fulfil, as the applier is told it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column

from dmdelta.model.schema import TableSchema
from dmdelta.silver.table.target import Target


class OnFailure(str, Enum):
    """What is done about rows that fail."""

    WARN = "warn"
    QUARANTINE = "quarantine"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One thing that each row should fulfil.

    Attributes:
        name: as people know it.
        failing: whether a row of silver fails; never NULL.
    """

    name: str
    failing: Column
    on_failure: OnFailure = OnFailure.WARN


RowChecks = Callable[[Target, TableSchema], Sequence[RowCheck]]
"""What the rows of a table, as silver has it, should fulfil."""


def no_checks(target: Target, schema: TableSchema) -> Sequence[RowCheck]:  # noqa: ARG001 - of no table
    """Nothing is expected."""
    return ()
