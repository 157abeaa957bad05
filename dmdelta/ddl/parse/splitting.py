"""Splits an ALTER TABLE into its actions: filters decide on each action separately, as in DM."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dmdelta.ddl.parse.statements import at_new_name, skip_wait, statement_cursor, statement_targets
from dmdelta.ddl.tokens import Cursor, Token, split_at_commas, tokenize, versioned_comments
from dmdelta.model.schema import TableName

_LISTS_FOLLOW = ("PARTITION", "ORDER")
"""After these words commas separate names, not actions."""
_OF_EXECUTION = ("ALGORITHM", "LOCK")


@dataclass(frozen=True, slots=True)
class SplitAlter:
    """An ALTER TABLE, split.

    Attributes:
        head: the text before the actions.
        actions: the text of each action.
    """

    head: str
    actions: tuple[str, ...]

    def of(self, actions: Sequence[str]) -> str:
        """The statement with only these actions."""
        return f"{self.head} {', '.join(actions)}"


def split_alter(sql: str) -> SplitAlter | None:
    """The actions of an ALTER TABLE; None for any other statement, and if commas separate names. Never raises."""
    tokens = _action_tokens(sql)
    if not tokens or any(token.keyword in _LISTS_FOLLOW for token in tokens):
        return None
    (head,) = _cut(sql, [(0, len(sql[: tokens[0].begin].rstrip()))])
    return SplitAlter(head, texts_of(sql, split_at_commas(tokens)))


def texts_of(sql: str, parts: Iterable[Sequence[Token]]) -> tuple[str, ...]:
    """The text of each part of a statement; versioned comments that reach beyond a part are opened or closed in it."""
    return _cut(sql, [(part[0].begin, part[-1].end) for part in parts])


def is_of_execution(tokens: Sequence[Token]) -> bool:
    """Whether an action only says how its server executes the ALTER TABLE: ALGORITHM and LOCK."""
    return tokens[0].keyword in _OF_EXECUTION


def has_unsplittable_actions(sql: str) -> bool:
    """Whether an ALTER TABLE has other actions besides one that cannot be split off: ORDER BY, or partitioning. Never
    raises.
    """
    parts = split_at_commas(_action_tokens(sql))
    words = [[token.keyword for token in part] for part in parts]
    if not words or words[0][0] in (*_LISTS_FOLLOW, "REMOVE") or "PARTITION" in words[0][1:2]:
        return False
    return any(word in (*_LISTS_FOLLOW, "PARTITIONING") for part in words for word in part)


@dataclass(frozen=True, slots=True)
class AlterRename:
    """A RENAME among the actions of an ALTER TABLE.

    Attributes:
        to: the table's new name.
        rest: the statement without it; '' if it has no other action, None if it cannot be split.
    """

    to: TableName
    rest: str | None


def alter_rename(sql: str, default_schema: str) -> AlterRename | None:
    """The RENAME of an ALTER TABLE that gives its table another name; None for any other statement. Never raises."""
    first, *others = statement_targets(sql, default_schema) or (None,)
    names = [(other.schema, other.table or "") for other in others if other.op == "rename_table"]
    # Of several, the server executes the last one.
    if first is None or first.op != "alter_table" or not names or names[-1] == (first.schema, first.table):
        return None
    split = split_alter(sql)
    if split is None:
        return AlterRename(names[-1], None)
    kept = [action for action in split.actions if not at_new_name(Cursor(tokenize(action)))]
    return AlterRename(names[-1], split.of(kept) if kept else "")


def _action_tokens(sql: str) -> list[Token]:
    """What follows the table's name in an ALTER TABLE; empty for any other statement."""
    cursor = statement_cursor(sql)
    first = cursor.take()
    while not cursor.ended and cursor.peek() != "TABLE":
        cursor.take()
    if first is None or first.keyword != "ALTER" or not cursor.accept("TABLE"):
        return []
    cursor.accept("IF", "EXISTS")
    cursor.table_name("")
    skip_wait(cursor)
    return cursor.rest()


def _cut(sql: str, spans: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    comments, texts = versioned_comments(sql), list[str]()
    for begin, end in spans:
        opened = [f"{opening} " for opening, first, last in comments if first < begin < last]
        closed = [" */" for _, first, last in comments if first < end < last]
        texts.append("".join([*opened, sql[begin:end], *closed]))
    return tuple(texts)
