"""The interface to a table of dm_meta that delta-rs and Spark implement, and its conditions and rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from enum import Enum
from typing import Any, Protocol

from dmdelta.lakehouse.access.commit_log import Commit
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit

MetadataRow = dict[str, Any]
"""Values by column; timestamps are in UTC. A table of an older version lacks columns."""


@dataclass(frozen=True, slots=True)
class PartitionBound:
    """The partitions of a table from a day on."""

    column: str
    first: date


class Comparison(Enum):
    """How a condition compares a column."""

    ONE_OF = "one of"
    NONE_OF = "none of"
    BELOW = "below"
    NULL = "null"
    NOT_NULL = "not null"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column; one that the table lacks is NULL in every row.

    Attributes:
        values: for ONE_OF and NONE_OF; NULL is neither, as in SQL. For BELOW, the limit.
    """

    column: str
    comparison: Comparison
    values: tuple[str | int, ...] = ()


def one_of(column: str, *values: str | int) -> Condition:
    """The column has one of these values."""
    return Condition(column, Comparison.ONE_OF, values)


def none_of(column: str, *values: str | int) -> Condition:
    """The column has a value, but none of these."""
    return Condition(column, Comparison.NONE_OF, values)


def below(column: str, limit: int) -> Condition:
    """The column has a value, which is less than `limit`."""
    return Condition(column, Comparison.BELOW, (limit,))


def is_null(column: str) -> Condition:
    """The column has no value."""
    return Condition(column, Comparison.NULL)


def is_not_null(column: str) -> Condition:
    """The column has a value."""
    return Condition(column, Comparison.NOT_NULL)


@dataclass(frozen=True, slots=True)
class NewestBy:
    """Of the rows with equal values in `keys`, the one with the highest `order` counts; rows without it are ignored."""

    keys: tuple[str, ...]
    order: str


RowCondition = Callable[[Callable[[str], str]], str]
"""A condition in the common part of both implementations' SQL. Gets the function that quotes text."""


class MetadataAccess(Protocol):
    """Reads and appends to one table. A table that does not exist has no commits and no rows.

    Every method raises LakehouseError if the table cannot be read or written.
    """

    def commits(self, limit: int | None) -> list[Commit]:
        """The newest `limit` commits, newest first."""

    def newest(self, by: NewestBy, conditions: Sequence[Condition]) -> list[MetadataRow]:
        """The newest row of each key among those that fulfil all conditions."""

    def rows(self, conditions: Sequence[Condition], columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows that fulfil all conditions, in no particular order; only these columns, or all."""

    def append(self, rows: Sequence[Mapping[str, Any]], tag: CommitTag | None) -> OwnCommit | None:
        """Append rows in one commit; columns that a row does not contain are NULL.

        Returns:
            The commit with this tag: this one, or an earlier one of the same run, which is not repeated. None without
            a tag.

        Raises:
            Fenced: another run committed under the tag's app at or after its version.
        """

    def delete(self, condition: RowCondition) -> None:
        """Delete the rows that fulfil a condition."""

    def compact(self) -> tuple[int, int]:
        """Rewrite small files into large ones. Returns the numbers of removed and added files."""


def metadata_row(row: Mapping[str, Any]) -> MetadataRow:
    """A row as both implementations return it."""
    return {name: utc(value) if isinstance(value, datetime) else value for name, value in row.items()}


def utc(moment: datetime) -> datetime:
    """A timestamp in UTC; one of Spark is in this machine's zone without saying so."""
    return moment.astimezone(timezone.utc)
