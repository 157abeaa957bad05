"""A row change for the target: SQL texts that Spark has produced, and the bronze events that it covers."""

from enum import Enum
from typing import NamedTuple

Event = tuple[int, int]
"""`seq` and `row` of a bronze row."""


class Act(Enum):
    """The operation on a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


ACTS = (Act.DELETE, Act.UPDATE, Act.INSERT)
"""Acts by number, in the order in which independent changes are executed."""


class Shape(NamedTuple):
    """What all changes of one table under one structure have in common, as SQL for the target.

    Attributes:
        table: the qualified name.
        columns: the columns of `values`, in parentheses.
        assigned: the assignments of ON DUPLICATE KEY UPDATE; '' if impossible: each update is then its own statement.
        identity: the key's column, or columns in parentheses; '' for a table without a key.
    """

    table: str
    columns: str
    assigned: str
    identity: str

    @property
    def keyless(self) -> bool:
        return not self.identity


class Change(NamedTuple):
    """One row change.

    Attributes:
        identity: the row's key as a literal or a tuple of literals; without a key, a condition that selects the row.
            For an update: the row after it; for a keyless one: the row before it.
        was: the row's key before an update that changes it, else None.
        values: the new row as a tuple of literals; None for a delete and for an image without all columns.
        sets: the new values as assignments, where `values` cannot be used; else None.
        keys: the keys that causality compares, the row's own first.
        events: the bronze rows that the change covers.
    """

    act: Act
    identity: str
    was: str | None
    values: str | None
    sets: str | None
    keys: tuple[str, ...]
    events: tuple[Event, ...]

    @property
    def found_by(self) -> str:
        """The identity of the existing row."""
        return self.was if self.was is not None else self.identity
