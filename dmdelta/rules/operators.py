"""Operator overrides for single statements: DM's `binlog skip`, `replace` and `inject`."""

from dataclasses import dataclass
from enum import Enum


class Verb(str, Enum):
    """How a statement is changed on its way to silver; the source has executed it unchanged."""

    SKIP = "skip"
    REPLACE = "replace"
    """Other statements are executed instead of it."""
    INJECT = "inject"
    """Other statements are executed before it."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An override for the statement at one position."""

    verb: Verb
    statements: tuple[str, ...] = ()

    def followed(self, statement: str) -> tuple[str, ...]:
        """The statements that silver executes for the original one."""
        if self.verb is Verb.SKIP:
            return ()
        return self.statements if self.verb is Verb.REPLACE else (*self.statements, statement)
