"""Plans how an ALTER TABLE is executed of which the target already has a part: action by action.

MySQL and MariaDB execute all actions of a statement or none. If the target lacks an index or a foreign key that one of
them drops, or has the column that one of them adds, it refuses the others, too.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dmdelta.ddl.parse.actions import (
    Action,
    Add,
    Change,
    DefaultCharset,
    DropIndex,
    DropKey,
    RenameIndex,
    SetKey,
    Show,
    given_column,
    is_index,
    key_columns,
    renamed_column,
    taken_column,
)
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.ddl.parse.splitting import has_unsplittable_actions, split_alter
from dmdelta.ddl.parse.statements import at_new_name
from dmdelta.ddl.tokens import Cursor, Token, split_at_commas, tokenize
from dmdelta.errors import SinkError
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName

_NO_TABLE = frozenset({1049, 1146})
_OF_THE_SOURCE = ("ALGORITHM", "LOCK")
_DEFAULTS, _COLUMNS, _INDEXES, _DROPPED, _RENAME = 2, 3, 4, 5, 6
_DROPS = {"FOREIGN": 0, "CONSTRAINT": 0, "CHECK": 0, "INDEX": 1, "KEY": 1, "PRIMARY": _INDEXES}
"""The order of the actions: a column exists before its index is added, and is in no key, index or foreign key that the
statement drops or replaces when it is dropped itself. New columns get the new default character set. A column that
loses AUTO_INCREMENT does so before its key is dropped. After a RENAME, no other action would find the table.
"""
_COUNTS = ("AUTO_INCREMENT", "SERIAL")
_KEY = "primary key"


@dataclass(frozen=True, slots=True)
class Already:
    """The target has refused a statement because it is in the state that the statement creates.

    Attributes:
        code: the number of the error.
        in_doubt: the target may have executed the statement before.
        shared: it may have executed the same statement of another source table.
    """

    code: int
    in_doubt: bool
    shared: bool = False


@dataclass(frozen=True, slots=True)
class _Single:
    """One action: its text, its effects on columns and keys, and its place in the order."""

    text: str
    effects: tuple[Action, ...]
    rank: int


def plan_rest(sql: str, already: Already, columns: Callable[[TableName], Collection[str]]) -> list[str]:
    """The statements that execute what the target still lacks of a refused statement; empty for nothing.

    Args:
        columns: the names of a table's columns at the target.

    Raises:
        SinkError: the actions have another effect if they are executed one by one, and nothing shows that the target
            has executed the statement.
    """
    if already.code in _NO_TABLE:
        return []
    if not has_unsplittable_actions(sql):
        singles = sorted(_singles(sql), key=lambda one: one.rank)
        if _are_independent(singles):
            return _statements(sql, singles)
    if (already.in_doubt or already.shared) and _shows_effect(sql, columns):
        return []
    raise SinkError(
        f"the target has the effect of some actions of a statement, which cannot be executed one by one: {sql[:200]}",
        hint="compare the table with the source's, and execute on the target what it lacks of the statement. Then skip "
        "it: dmdelta binlog skip",
        code=already.code,
    )


def _singles(sql: str) -> Iterator[_Single]:
    split = split_alter(sql)
    for action in split.actions if split is not None else ():
        for text in _unfolded(action):
            tokens = tokenize(text)
            if tokens[0].keyword not in _OF_THE_SOURCE:  # how the source has executed the statement
                effects = alter_actions(tokens, "")
                yield _Single(text, effects, _rank(tokens, effects))


def _unfolded(action: str) -> Iterator[str]:
    """`ADD (a INT, INDEX (a))` is several actions."""
    cursor = Cursor(tokenize(action))
    added = cursor.accept("ADD")
    cursor.accept("COLUMN")
    lenient = "IF NOT EXISTS " if cursor.accept("IF", "NOT", "EXISTS") else ""
    inner = cursor.parenthesized() if added else None
    if inner is None:
        yield action
    for part in split_at_commas(inner or []):
        text = action[part[0].begin : part[-1].end]
        yield f"ADD {text}" if is_index(part) else f"ADD COLUMN {lenient}{text}"


def _rank(tokens: list[Token], effects: Iterable[Action]) -> int:
    verb, following = tokens[0].keyword, tokens[1].keyword if len(tokens) > 1 else ""
    if verb == "DROP":
        return _DROPS.get(following, _DROPPED)
    if verb == "ADD" and len(tokens) > 1 and is_index(tokens[1:]):
        return _INDEXES
    if at_new_name(Cursor(tokens)):
        return _RENAME
    return _DEFAULTS if any(isinstance(effect, DefaultCharset) for effect in effects) else _COLUMNS


def _are_independent(singles: Sequence[_Single]) -> bool:
    """Whether each action has the same effect alone, in any state that some of the others have left."""
    given, taken, used = set[str](), set[str](), set[str]()
    for effect in (effect for one in singles for effect in one.effects):
        given |= {given_column(effect), _given_index(effect)}
        taken |= {taken_column(effect), _taken_index(effect)}
        used |= {_used_column(effect)}
    present = set[str]()
    for effect in (effect for one in singles for effect in one.effects):
        follows = effect.definition.follows if isinstance(effect, Add | Change) else None
        if follows and follows.lower() in given - present:
            return False
        present |= {given_column(effect)}
    return not (given | used) & taken - {""}


def _used_column(effect: Action) -> str:
    """The column that an action changes under its name."""
    if isinstance(effect, Change):
        return "" if renamed_column(effect) else effect.was.lower()
    return effect.name.lower() if isinstance(effect, Show) else ""


def _given_index(effect: Action) -> str:
    # An index that is dropped and added again is the new one afterwards, however often both are executed. A key that
    # a new column brings is not added again: the column is there.
    if given_column(effect) and _is_of_key(effect):
        return _KEY
    return f"index {effect.name.lower()}" if isinstance(effect, RenameIndex) else ""


def _taken_index(effect: Action) -> str:
    if isinstance(effect, DropKey):
        return _KEY
    if isinstance(effect, RenameIndex):
        return f"index {effect.was.lower()}"
    return f"index {effect.name.lower()}" if isinstance(effect, DropIndex) else ""


def _statements(sql: str, singles: Sequence[_Single]) -> list[str]:
    """A statement for each action; one for all that concern the primary key, unless there are no others."""
    split = split_alter(sql)
    if split is None or len(singles) < 2:
        return []
    of_key = [one for one in singles if any(map(_is_of_key, one.effects))]
    together = of_key if 1 < len(of_key) < len(singles) else []
    statements, names = list[str](), set[str]()
    for one in singles:
        if one not in together:
            statements.append(split.of([_named(one.text, names)]))
        elif one is together[-1]:
            statements.append(split.of([other.text for other in together]))
    return statements


def _is_of_key(effect: Action) -> bool:
    """Whether an action changes the primary key, or may need such a change: an AUTO_INCREMENT column is in a key."""
    if isinstance(effect, Add | Change):
        return effect.definition.key or effect.definition.computed in _COUNTS
    return isinstance(effect, DropKey | SetKey)


def _named(action: str, names: set[str]) -> str:
    """An action with the name that the server would give an index, so that it refuses a second execution.

    Args:
        names: of indexes that the statement has added before; the index is added.
    """
    tokens = tokenize(action)
    cursor = Cursor(tokens)
    if not cursor.accept("ADD") or (cursor.accept("CONSTRAINT") and cursor.peek() != "UNIQUE"):
        return action
    kind = cursor.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
    if not cursor.accept_any("INDEX", "KEY") and not kind:
        return action
    cursor.accept("IF", "NOT", "EXISTS")
    first, columns = cursor.take(), key_columns(Cursor(tokens))
    if first is None or first.keyword not in ("(", "USING") or columns[:1] in ((), ("(",)):
        names |= {first.text.lower()} if first is not None else set()
        return action
    numbered = (columns[0], *(f"{columns[0]}_{number}" for number in range(2, len(names) + 3)))
    name = next(name for name in numbered if name.lower() not in names)
    names.add(name.lower())
    return f"{action[: first.begin]}{quoted_name(name)} {action[first.begin :]}"


def _shows_effect(sql: str, columns: Callable[[TableName], Collection[str]]) -> bool:
    """Whether the columns of the target's table are those after the statement, which it has executed wholly or not."""
    table, effects = altered_table(sql, "") or (None, ())
    given, taken = {given_column(effect) for effect in effects}, {taken_column(effect) for effect in effects}
    present = {name.lower() for name in columns(table)} if table is not None else set()
    added, gone = given - taken - {""}, taken - given - {""}
    return bool(added or gone) and added <= present and not gone & present
