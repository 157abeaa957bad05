"""What an operator has decided about single statements: DM's `binlog skip`, `replace` and `inject`."""

from dataclasses import dataclass
from enum import Enum


class Verb(str, Enum):
    """What is done with a statement on its way to silver; the source has executed it as it stands."""

    SKIP = "skip"
    REPLACE = "replace"
    """Others are followed in its place."""
    INJECT = "inject"
    """Others are followed ahead of it."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A decision about the statement at one position."""

    verb: Verb
    statements: tuple[str, ...] = ()

    def followed(self, statement: str) -> tuple[str, ...]:
        """The statements that silver follows for the one that is there."""
        if self.verb is Verb.SKIP:
            return ()
        return self.statements if self.verb is Verb.REPLACE else (*self.statements, statement)
