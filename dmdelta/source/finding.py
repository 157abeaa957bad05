"""What a check of a source says: a thing that was looked at, and how to mend it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

SHOWN = 5
"""So many names stand in a message; the number of the others behind them."""


class Level(str, Enum):
    """`fail` stops a run, `warn` is for the operator to judge."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing; `fix` is the statement or step that mends it, empty for a pass."""

    name: str
    level: Level
    message: str
    fix: str = ""


def listed(names: Sequence[str]) -> str:
    """Names for a message."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
