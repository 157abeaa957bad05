"""Plans how an ALTER TABLE is executed of which the target already has a part: action by action.

MySQL and MariaDB execute all actions of a statement or none. If the target lacks an index or a foreign key that one of
them drops, or has the column that one of them adds, it refuses the others, too.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dmdelta.ddl.parse.actions import (
    Action,
    Add,
    Change,
    DefaultCharset,
    Drop,
    DropIndex,
    DropKey,
    RenameIndex,
    SetKey,
    Show,
    given_column,
    is_index,
    renamed_column,
    taken_column,
)
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.ddl.parse.index_names import adds_index, indexed_columns, is_nameless, named_index
from dmdelta.ddl.parse.splitting import has_unsplittable_actions, is_of_execution, split_alter, texts_of
from dmdelta.ddl.parse.statements import at_new_name
from dmdelta.ddl.tokens import Cursor, Token, split_at_commas, tokenize
from dmdelta.errors import SinkError

_NO_TABLE = frozenset({1049, 1146})
_DEFAULTS, _COLUMNS, _DROPPED_KEY, _KEY_COLUMN, _INDEXES, _DROPPED, _RENAME = range(2, 9)
_DROPS = {"FOREIGN": 0, "CONSTRAINT": 0, "CHECK": 0, "INDEX": 1, "KEY": 1}
"""The order of the actions: a column exists before its index is added, and is in no key, index or foreign key that the
statement drops or replaces when it is dropped itself. New columns get the new default character set. The primary key is
dropped after a column of it has lost AUTO_INCREMENT, and before another one is added. After a RENAME, no other action
would find the table.
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
class Rest:
    """What the target still lacks of a refused statement.

    Attributes:
        statements: they execute it.
        left_out: actions that would do harm if the target has executed them before.
    """

    statements: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Single:
    """One action.

    Attributes:
        effects: on columns and keys.
        rank: its place in the order.
        indexed: the columns, in lower case, of the index that it adds.
        nameless: it adds what the server gives a new name each time: the server does not refuse a second execution.
    """

    text: str
    effects: tuple[Action, ...]
    rank: int
    indexed: tuple[str, ...]
    nameless: bool


def plan_rest(sql: str, already: Already, columns: Collection[str]) -> Rest:
    """What the target still executes of a refused statement, action by action.

    Args:
        columns: the names of the columns of the target's table.

    Raises:
        SinkError: the actions have another effect if they are executed one by one, and nothing shows that the target
            has executed the statement.
    """
    if already.code in _NO_TABLE:
        return Rest()
    given, taken = _column_names(sql)
    added, gone, present = given - taken, taken - given, {name.lower() for name in columns}
    if not has_unsplittable_actions(sql):
        singles = sorted(_singles(sql), key=lambda one: one.rank)
        if len(singles) < 2:
            return Rest()
        if _are_independent(singles):
            # If the target lacks a new column, it has not executed the statement.
            left_out = [one for one in singles if added <= present and _does_harm(one, already, present)]
            kept = [one for one in singles if one not in left_out]
            return Rest(_statements(sql, kept, len(singles)), tuple(one.text for one in left_out))
    # A statement that changes no names of columns counts as executed: nothing can show that it was.
    shown = added <= present and not gone & present if added or gone else not given
    if shown and (already.in_doubt or already.shared):
        return Rest()
    raise SinkError(
        f"the target has the effect of some actions of a statement, which cannot be executed one by one: {sql[:200]}",
        hint="compare the table with the source's, and execute on the target what it lacks of the statement. Then skip "
        "it: dmdelta binlog skip",
        code=already.code,
    )


def _column_names(sql: str) -> tuple[set[str], set[str]]:
    """The columns that a statement gives, and those that it takes away; one that it does both to exists after it."""
    _, effects = altered_table(sql, "") or (None, ())
    given, taken = {given_column(effect) for effect in effects}, {taken_column(effect) for effect in effects}
    return given - {""}, taken - {""}


def _does_harm(one: _Single, already: Already, present: Collection[str]) -> bool:
    """Whether an action that the target may have executed has another effect if it is executed again: a constraint
    exists twice, or the column of another shard's later statements is dropped or changed.
    """
    if already.shared and any(_alters_values(effect, present) for effect in one.effects):
        return True
    return one.nameless and (already.in_doubt or already.shared)


def _alters_values(effect: Action, present: Collection[str]) -> bool:
    """Whether an action drops a column or changes its type. A new primary key is refused if the table has one."""
    if isinstance(effect, Change):
        return not given_column(effect) and not effect.definition.key
    return isinstance(effect, Drop) and taken_column(effect) in present


def _singles(sql: str) -> Iterator[_Single]:
    split = split_alter(sql)
    for action in split.actions if split is not None else ():
        for text in _unfolded(action):
            tokens = tokenize(text)
            if not is_of_execution(tokens):
                effects = alter_actions(tokens, "")
                yield _Single(text, effects, _rank(tokens, effects), indexed_columns(tokens), is_nameless(tokens))


def _unfolded(action: str) -> Iterator[str]:
    """`ADD (a INT, INDEX (a))` is several actions."""
    cursor = Cursor(tokenize(action))
    added = cursor.accept("ADD")
    cursor.accept("COLUMN")
    lenient = "IF NOT EXISTS " if cursor.accept("IF", "NOT", "EXISTS") else ""
    inner = cursor.parenthesized() if added else None
    if inner is None:
        yield action
    parts = split_at_commas(inner or [])
    for part, text in zip(parts, texts_of(action, parts), strict=True):
        yield f"ADD {text}" if is_index(part) else f"ADD COLUMN {lenient}{text}"


def _rank(tokens: list[Token], effects: Iterable[Action]) -> int:
    if any(isinstance(effect, DropKey) for effect in effects):
        return _DROPPED_KEY
    if tokens[0].keyword == "DROP":
        return _DROPS.get(tokens[1].keyword if len(tokens) > 1 else "", _DROPPED)
    if adds_index(tokens):
        return _INDEXES
    if at_new_name(Cursor(tokens)):
        return _RENAME
    if any(isinstance(effect, Change) and effect.definition.key and not given_column(effect) for effect in effects):
        return _KEY_COLUMN
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


def _statements(sql: str, singles: Sequence[_Single], actions: int) -> tuple[str, ...]:
    """A statement for each action; one for all that concern the primary key, unless there are no others.

    Args:
        actions: how many the statement has, of which these remain.
    """
    split = split_alter(sql)
    assert split is not None, "it has actions"
    counting = {given for one in singles for effect in one.effects if (given := _counting_column(effect))}
    of_key = [one for one in singles if any(map(_is_of_key, one.effects)) or counting & set(one.indexed)]
    together = of_key if 1 < len(of_key) < actions else []
    statements, names = list[str](), set[str]()
    for one in singles:
        if one not in together:
            statements.append(split.of([named_index(one.text, names)]))
        elif one is together[-1]:
            statements.append(split.of([named_index(other.text, names) for other in together]))
    return tuple(statements)


def _is_of_key(effect: Action) -> bool:
    """Whether an action changes the primary key, or may need such a change: an AUTO_INCREMENT column is in a key."""
    if isinstance(effect, Add | Change):
        return effect.definition.key or bool(_counting_column(effect))
    return isinstance(effect, DropKey | SetKey)


def _counting_column(effect: Action) -> str:
    """The AUTO_INCREMENT column, in lower case, that an action defines; '' for none."""
    if isinstance(effect, Add | Change) and effect.definition.computed in _COUNTS:
        return effect.definition.name.lower()
    return ""
