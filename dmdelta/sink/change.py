"""A row change on its way to the target: texts that Spark has made, and the events that it stands for."""

from enum import Enum
from typing import NamedTuple

Event = tuple[int, int]
"""`seq` and `row` of a bronze row."""


class Act(Enum):
    """What is done with a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


ACTS = (Act.DELETE, Act.UPDATE, Act.INSERT)
"""Acts by number, in the order in which changes that cannot meet are executed."""


class Shape(NamedTuple):
    """What all changes of one table under one structure have in common, as SQL of the target.

    Attributes:
        table: the qualified name.
        columns: the columns of `values`, in parentheses.
        assigned: what ON DUPLICATE KEY UPDATE assigns; '' if it cannot: each update is a statement of its own.
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
        identity: the row's key as a literal or a tuple of literals; without a key, a condition that finds the row.
            Of an update: the row as it is afterwards; of a keyless one: as it was.
        was: the row's key before an update that changes it, else None.
        values: the new row as a tuple of literals; None for a delete and for an image without all columns.
        sets: the new values as assignments, where `values` do not do; else None.
        keys: the keys by which changes meet, the row's own first (`causality`).
        events: the bronze rows that it stands for.
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
        """The identity of the row that is there before."""
        return self.was if self.was is not None else self.identity
