"""Survivors that no unit test can detect, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.mutation.mutants import Mutant

FILE = Path(__file__).with_name("accepted.yml")


@dataclass(frozen=True, slots=True)
class Change:
    """The line of a mutant.

    Attributes:
        code: the line, unmutated, without its indentation.
        becomes: the same line, mutated.
        occurrence: which of the module's lines with this code it is, from 1.
    """

    code: str
    becomes: str
    occurrence: int = 1


@dataclass(frozen=True, slots=True)
class Accepted:
    """A line whose mutants by an operator may survive.

    Attributes:
        path: of the module, below the root.
        code: the line, unmutated, without its indentation.
        operator: a prefix of cosmic-ray's name of the operator.
        reason: why no unit test can detect the change.
        becomes: the mutated lines that the reason covers, as the lane prints them; without any it covers all.
        occurrence: which of the module's lines with this code it is, from 1; None: the module has only one.
    """

    path: str
    code: str
    operator: str
    reason: str
    becomes: Sequence[str] = ()
    occurrence: int | None = None

    def covers(self, mutant: Mutant, change: Change) -> bool:
        """Whether the reason is about this mutant."""
        return (
            (self.path, self.code) == (mutant.path, change.code)
            and mutant.operator.startswith(self.operator)
            and (not self.becomes or change.becomes in self.becomes)
            and self.occurrence in (None, change.occurrence)
        )


def read_accepted() -> list[Accepted]:
    """The entries of `accepted.yml`."""
    return [Accepted(**entry) for entry in yaml.safe_load(FILE.read_text("utf-8")) or ()]


def change_of(mutant: Mutant, text: str, changed: str) -> Change:
    """The line that differs between the text of a module and the mutated text."""
    lines = [line.strip() for line in text.splitlines()]
    code = lines[mutant.line - 1]
    return Change(code, changed.splitlines()[mutant.line - 1].strip(), lines[: mutant.line].count(code))


def accepted_reason(accepted: Sequence[Accepted], mutant: Mutant, change: Change) -> str | None:
    """Why a survivor is accepted; None: it is not accepted."""
    return next((entry.reason for entry in accepted if entry.covers(mutant, change)), None)
