"""Survivors that no unit test can detect, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.mutation.mutants import Mutant

FILE = Path(__file__).with_name("accepted.yml")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A line whose mutants by an operator may survive.

    Attributes:
        path: of the module, below the root.
        code: the line, unmutated, without its indentation.
        operator: a prefix of cosmic-ray's name of the operator.
        reason: why no unit test can detect the change.
    """

    path: str
    code: str
    operator: str
    reason: str


def read_accepted() -> list[Accepted]:
    """The entries of `accepted.yml`."""
    return [Accepted(**entry) for entry in yaml.safe_load(FILE.read_text("utf-8")) or ()]


def accepted_reason(accepted: Sequence[Accepted], mutant: Mutant, code: str) -> str | None:
    """Why a survivor is accepted; None: it is not accepted."""
    for entry in accepted:
        if (entry.path, entry.code) == (mutant.path, code) and mutant.operator.startswith(entry.operator):
            return entry.reason
    return None
