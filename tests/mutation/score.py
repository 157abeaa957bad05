"""What a sample shows: the share of killed mutants, and the survivors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutation.accepted import Change
from tests.mutation.mutants import Mutant

LEAST_KILLED = 0.85
"""Of all mutants. If survivors with a reason did not count, reasons could replace tests."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no unit test detects.

    Attributes:
        tests: how many test functions ran on it.
        reason: why no test can detect it; None: no reason is given.
    """

    mutant: Mutant
    change: Change
    tests: int
    reason: str | None

    def __str__(self) -> str:
        faced = f"{self.tests} tests" if self.tests else "no unit test executes it"
        changed = f"{self.change.code} -> {self.change.becomes}"
        return f"{self.mutant} ({faced}): {changed}{f' - {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a sample.

    Attributes:
        positions: of the pool.
        killed: mutants that a test detects, with those that exceed their time.
        timed_out: how many of these exceed it.
    """

    positions: int
    killed: int
    timed_out: int
    survivors: tuple[Survivor, ...]

    @property
    def unexplained(self) -> tuple[Survivor, ...]:
        """The survivors without a reason: each needs a test or a reason."""
        return tuple(survivor for survivor in self.survivors if survivor.reason is None)

    @property
    def share(self) -> float:
        """The share of the killed among all mutants."""
        return _share(self.killed, self.killed + len(self.survivors))

    @property
    def detectable_share(self) -> float:
        """The share of the killed among the mutants that a test can detect."""
        return _share(self.killed, self.killed + len(self.unexplained))

    @property
    def passes(self) -> bool:
        """Whether the tests kill enough; survivors without a reason do not change it."""
        return self.share >= LEAST_KILLED

    def notes(self) -> Iterator[str]:
        """Lines for the output and the page."""
        count, left = self.killed + len(self.survivors), len(self.unexplained)
        yield (
            f"{self.killed} of {count} mutants killed ({self.share:.1%}), {self.timed_out} of them by a timeout; "
            f"{len(self.survivors) - left} cannot be noticed, {self.detectable_share:.1%} of the others are killed; "
            f"{left} survive without a reason; {self.positions:,} positions in the pool"
        )
        yield from (f"failed: {survivor}" for survivor in self.unexplained)
        yield from (f"survivor {survivor}" for survivor in self.survivors if survivor.reason is not None)

    def figures(self) -> dict[str, Any]:
        """What `make nightly` reads: `failed` are the survivors without a reason."""
        return {"passed": self.killed, "failed": len(self.unexplained), "notes": list(self.notes())}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
