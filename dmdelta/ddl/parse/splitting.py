"""Splits an ALTER TABLE into its actions: filters decide on each action separately, as in DM."""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.ddl.parse.statements import statement_cursor
from dmdelta.ddl.tokens import Token, split_at_commas

_LISTS_FOLLOW = ("PARTITION", "ORDER")
"""After these words commas separate names, not actions."""


@dataclass(frozen=True, slots=True)
class SplitAlter:
    """An ALTER TABLE, split.

    Attributes:
        head: the text up to the table's name.
        actions: the text of each action.
    """

    head: str
    actions: tuple[str, ...]

    def of(self, actions: Sequence[str]) -> str:
        """The statement with only these actions."""
        return f"{self.head} {', '.join(actions)}"


def split_alter(sql: str) -> SplitAlter | None:
    """The actions of an ALTER TABLE; None for any other statement, and if commas separate names. Never raises."""
    cursor = statement_cursor(sql)
    first = cursor.take()
    while not cursor.ended and cursor.peek() != "TABLE":
        cursor.take()
    if first is None or first.keyword != "ALTER" or not cursor.accept("TABLE"):
        return None
    cursor.accept("IF", "EXISTS")
    cursor.table_name("")
    tokens = cursor.rest()
    if not tokens or any(token.keyword in _LISTS_FOLLOW for token in tokens):
        return None
    return SplitAlter(sql[: tokens[0].begin].rstrip(), tuple(_text(sql, part) for part in split_at_commas(tokens)))


def _text(sql: str, tokens: Sequence[Token]) -> str:
    return sql[tokens[0].begin : tokens[-1].end]
