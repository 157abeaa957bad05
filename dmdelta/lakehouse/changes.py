"""Changes of a table that are planned as text: a commit carries the changes that are still to follow it.

So a run that resumes after a crash executes the rest of a plan unchanged, whatever the table looks like by then.
"""

from dataclasses import dataclass
from enum import Enum


class Verb(str, Enum):
    """How the text of a change is executed."""

    ALTER = "alter"
    """The part after ALTER TABLE and the table."""
    UPDATE = "update"
    """SET … WHERE …"""
    DELETE = "delete"
    """The condition."""
    REWRITE = "rewrite"
    """Expressions that rewrite every row and column."""


@dataclass(frozen=True, slots=True)
class Change:
    """One future commit, in SQL."""

    verb: Verb
    text: str

    def to_pair(self) -> list[str]:
        return [self.verb.value, self.text]

    @classmethod
    def from_pair(cls, pair: list[str]) -> "Change":
        return cls(Verb(pair[0]), pair[1])
