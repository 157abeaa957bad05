"""Changes of a table that are planned as text: a commit carries those that are still to come behind it.

So whoever goes on after a crash makes the rest of a plan as it was made, whatever the table looks like by now.
"""

from dataclasses import dataclass
from enum import Enum


class Verb(str, Enum):
    """How the text of a change is read."""

    ALTER = "alter"
    """What follows ALTER TABLE and the table."""
    UPDATE = "update"
    """SET … WHERE …"""
    DELETE = "delete"
    """The condition."""
    REWRITE = "rewrite"
    """Expressions that make every row and column anew."""


@dataclass(frozen=True, slots=True)
class Change:
    """One commit to come, in SQL."""

    verb: Verb
    text: str

    def to_pair(self) -> list[str]:
        return [self.verb.value, self.text]

    @classmethod
    def from_pair(cls, pair: list[str]) -> "Change":
        return cls(Verb(pair[0]), pair[1])
