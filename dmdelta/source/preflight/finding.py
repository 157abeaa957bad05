"""The result of one check of a source, and how to fix it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

SHOWN = 5
"""Number of names listed in a message; the others are counted."""


class Level(str, Enum):
    """`fail` stops a run; `warn` leaves the decision to the operator."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `fix` is the statement or step that resolves it, empty for a pass."""

    name: str
    level: Level
    message: str
    fix: str = ""


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """Names, formatted for a message that contains at most so many of them."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
