"""A table's structure after the actions of one statement, and where each column comes from.

As the servers do it, all actions of a statement refer to the structure before it; only FIRST and AFTER refer to the new
one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dmdelta.ddl.actions import (
    Action,
    Add,
    Change,
    Convert,
    DefaultCharset,
    Doubt,
    Drop,
    DropKey,
    RenameColumn,
    SetKey,
    Show,
    UniqueIndex,
    Unknown,
)
from dmdelta.ddl.columns import Definition
from dmdelta.ddl.effects import Altered, Origin, Unread
from dmdelta.ddl.type_words import converted
from dmdelta.model.schema import Column, TableName, TableSchema


class _CannotFollow(Exception):
    """The actions do not fit the structure."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A column of the new structure."""

    column: Column
    origin: Origin


@dataclass(slots=True)
class _Draft:
    """The new structure while it is made.

    Attributes:
        moves: the columns to place, in the statement's order: what they come after.
        names: of the columns that stay, lower case: the old to the new.
        charset: of columns that tell no other.
    """

    columns: list[_Placed] = field(default_factory=list)
    moves: list[tuple[_Placed, str | None]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    charset: str | None = None


def new_structure(table: TableName, actions: Sequence[Action], charset: str | None = None) -> TableSchema | Unread:
    """The structure of a table that is made from column definitions and indexes, in a default character set."""
    made = altered(TableSchema(*table, ()), actions, charset=charset)
    return made if isinstance(made, Unread) else made.after


def altered(
    before: TableSchema, actions: Sequence[Action], *, ignore: bool = False, charset: str | None = None
) -> Altered | Unread:
    """What the actions make of a table.

    Args:
        ignore: ALTER IGNORE: rows that a unique index does not allow go.
        charset: the default character set of columns, unless the actions tell another; None: nobody knows it.
    """
    for action in actions:
        if isinstance(action, Unknown):
            return Unread(before.name, f"{action.text} is not understood")
    try:
        draft = _drafted(before, actions, charset)
        key = _key(before, draft, actions)
    except _CannotFollow as error:
        return Unread(before.name, str(error))
    keyed = {name.lower() for name in key}
    columns = tuple(
        replace(placed.column, nullable=placed.column.nullable and placed.column.name.lower() not in keyed)
        for placed in draft.columns
    )
    doubts = [action.reason for action in actions if isinstance(action, Doubt)]
    if ignore and any(_is_unique(action) for action in actions):
        doubts.append("ALTER IGNORE deletes rows that a unique index does not allow")
    after = replace(before, columns=columns, primary_key=key)
    return Altered(before, after, tuple(placed.origin for placed in draft.columns), doubts[0] if doubts else "")


def is_nothing(effect: Altered) -> bool:
    """The statement changed no column, no key and no row."""
    stays = all(
        origin.was == column.name for origin, column in zip(effect.origins, effect.before.columns, strict=False)
    )
    return stays and effect.before == effect.after and not effect.doubt


def _is_unique(action: Action) -> bool:
    defined = action.definition if isinstance(action, (Add, Change)) else None
    return isinstance(action, (SetKey, UniqueIndex)) or (defined is not None and (defined.unique or defined.key))


def default_charset(actions: Iterable[Action]) -> str | None:
    """The default character set that actions give a table, None if they leave it."""
    told = (action.charset for action in actions if isinstance(action, (Convert, DefaultCharset)))
    return next((charset for charset in told if charset is not None), None)


def _drafted(before: TableSchema, actions: Sequence[Action], charset: str | None) -> _Draft:
    draft = _Draft(charset=default_charset(actions) or charset)
    present = {column.name.lower() for column in before.columns}
    dropped = {act.name.lower() for act in actions if isinstance(act, Drop)}
    _assert_there(present, actions)
    for column in before.columns:
        if column.name.lower() not in dropped:
            _keep(draft, column, actions)
    for action in actions:
        if isinstance(action, Add) and not (action.lenient and action.definition.name.lower() in present - dropped):
            _add(draft, action.definition)
    for placed, follows in draft.moves:
        _place(draft.columns, placed, follows)
    names = [placed.column.name.lower() for placed in draft.columns]
    for name in names:
        if names.count(name) > 1:
            raise _CannotFollow(f"the column {name} is there already")
    return draft


def _assert_there(present: set[str], actions: Iterable[Action]) -> None:
    for action in actions:
        if isinstance(action, Drop | Show):
            name = action.name
        elif isinstance(action, Change | RenameColumn):
            name = action.was
        else:
            continue
        lenient = not isinstance(action, Show) and action.lenient
        if name.lower() not in present and not lenient:
            raise _CannotFollow(f"the column {name} is not there")


def _keep(draft: _Draft, column: Column, actions: Iterable[Action]) -> None:
    """A column that stays, as the actions leave it."""
    was, follows = column.name, None
    origin = Origin(was)
    for action in actions:
        if isinstance(action, Convert):
            column = converted(column, action.charset)
        elif isinstance(action, RenameColumn) and action.was.lower() == was.lower():
            column = replace(column, name=action.name)
        elif isinstance(action, Show) and action.name.lower() == was.lower():
            column = replace(column, visible=action.visible)
        elif isinstance(action, Change) and action.was.lower() == was.lower():
            column = action.definition.within(draft.charset)
            follows = action.definition.follows
            if action.definition.generated:
                origin = Origin(None, action.definition.fill(column))
    placed = _Placed(column, origin)
    draft.columns.append(placed)
    draft.names[was.lower()] = column.name
    if follows is not None:
        draft.moves.append((placed, follows))


def _add(draft: _Draft, definition: Definition) -> None:
    column = definition.within(draft.charset)
    placed = _Placed(column, Origin(None, definition.fill(column)))
    draft.columns.append(placed)
    if definition.follows is not None:
        draft.moves.append((placed, definition.follows))


def _place(columns: list[_Placed], placed: _Placed, follows: str | None) -> None:
    columns.remove(placed)
    names = [other.column.name.lower() for other in columns]
    if follows and follows.lower() not in names:
        raise _CannotFollow(f"the column {follows} is not there")
    columns.insert(names.index(follows.lower()) + 1 if follows else 0, placed)


def _key(before: TableSchema, draft: _Draft, actions: Iterable[Action]) -> tuple[str, ...]:
    """The new key: that of before without the columns that went, unless it goes or another comes."""
    stays = () if any(isinstance(action, DropKey) for action in actions) else before.primary_key
    present = {placed.column.name.lower(): placed.column.name for placed in draft.columns}
    # A column that takes the place of one that is dropped in the same statement is in the key.
    followed = (draft.names.get(name.lower()) or present.get(name.lower()) for name in stays)
    key = tuple(name for name in followed if name is not None)
    for action in actions:
        if isinstance(action, SetKey) and not (action.lenient and key):
            missing = [name for name in action.columns if name.lower() not in present]
            if missing or not action.columns:
                raise _CannotFollow("the columns of the primary key are not told")
            key = tuple(present[name.lower()] for name in action.columns)
        elif isinstance(action, (Add, Change)) and action.definition.key:
            key = (present[action.definition.name.lower()],)
    return key
