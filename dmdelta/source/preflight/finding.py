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


def listed(names: Sequence[str]) -> str:
    """Names, formatted for a message."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
