"""A table's structure after the actions of one statement, and the origin of each column.

As in the servers, all actions of a statement refer to the structure before it; only FIRST and AFTER refer to the new
one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dmdelta.ddl.parse.actions import (
    Action,
    Add,
    Change,
    Convert,
    DefaultCharset,
    Doubt,
    Drop,
    DropKey,
    RenameColumn,
    RenameIndex,
    SetKey,
    Show,
    UniqueIndex,
    Unknown,
)
from dmdelta.ddl.parse.columns import Definition
from dmdelta.ddl.tracking.effects import Altered, Origin, Unread
from dmdelta.ddl.types.type_words import converted
from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.model.type_names import INTEGERS


class _InvalidAction(Exception):
    """The actions do not fit the structure."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A column of the new structure."""

    column: Column
    origin: Origin


@dataclass(slots=True)
class _Draft:
    """The new structure under construction.

    Attributes:
        moves: the columns to place, in the statement's order, with the column they are placed after.
        kept: the remaining columns, by their old name in lower case.
        charset: of columns without one of their own.
    """

    columns: list[_Placed] = field(default_factory=list)
    moves: list[tuple[_Placed, str | None]] = field(default_factory=list)
    kept: dict[str, _Placed] = field(default_factory=dict)
    charset: str | None = None


def new_structure(table: TableName, actions: Sequence[Action], charset: str | None = None) -> TableSchema | Unread:
    """The structure of a table created from column definitions and indexes, with a default character set."""
    effect = altered(TableSchema(*table, ()), actions, charset=charset)
    return effect if isinstance(effect, Unread) else effect.after


def altered(
    before: TableSchema, actions: Sequence[Action], *, ignore: bool = False, charset: str | None = None
) -> Altered | Unread:
    """Apply the actions to a table.

    Args:
        ignore: ALTER IGNORE: rows that violate a unique index are deleted.
        charset: the default character set of columns, unless the actions set another; None if unknown.
    """
    for action in actions:
        if isinstance(action, Unknown):
            return Unread(before.name, f"{action.text} is not understood")
    try:
        draft = _drafted(before, actions, charset)
        key = _key(before, draft, actions)
    except _InvalidAction as error:
        return Unread(before.name, str(error))
    keyed = {name.lower() for name in key}
    columns = tuple(
        replace(placed.column, nullable=placed.column.nullable and placed.column.name.lower() not in keyed)
        for placed in draft.columns
    )
    doubts = [action.reason for action in actions if isinstance(action, Doubt)]
    if ignore and any(is_unique(action) for action in actions):
        doubts.append("ALTER IGNORE deletes rows that violate a unique index")
    doubts += _unknown_values(before, actions)
    after = replace(before, columns=columns, primary_key=key, unique_key=_unique_key(before, key, actions))
    return Altered(before, after, tuple(placed.origin for placed in draft.columns), doubts[0] if doubts else "")


def _unknown_values(before: TableSchema, actions: Iterable[Action]) -> list[str]:
    """Why values are unknown: a FLOAT(M,D) or DOUBLE(M,D) rounds fractions, and no table map has the digits; or
    AUTO_INCREMENT replaces NULL.
    """
    columns = {column.name.lower(): column for column in before.columns}
    changes = [action for action in actions if isinstance(action, Change) and action.was.lower() in columns]
    doubts = list[str]()
    for action in changes:
        old, definition = columns[action.was.lower()], action.definition
        if definition.rounds and old.type not in (definition.column.type, "bit", "year", *INTEGERS):
            doubts.append(f"the server rounds the values of {action.was} to the digits of the new type")
        if definition.computed == "AUTO_INCREMENT" and old.nullable:
            doubts.append(f"AUTO_INCREMENT generates values for {action.was} that are not in the log")
    return doubts


def is_nothing(effect: Altered) -> bool:
    """Whether the statement changed no column, no key and no row."""
    stays = all(
        origin.was == column.name for origin, column in zip(effect.origins, effect.before.columns, strict=False)
    )
    return stays and effect.before == effect.after and not effect.doubt


def is_unique(action: Action) -> bool:
    """Whether the action adds a unique index or a key."""
    defined = action.definition if isinstance(action, (Add, Change)) else None
    return isinstance(action, (SetKey, UniqueIndex)) or (defined is not None and (defined.unique or defined.key))


def default_charset(actions: Iterable[Action]) -> str | None:
    """The default character set that actions give a table, None if they do not change it."""
    charsets = (action.charset for action in actions if isinstance(action, (Convert, DefaultCharset)))
    return next((charset for charset in charsets if charset is not None), None)


def _drafted(before: TableSchema, actions: Sequence[Action], charset: str | None) -> _Draft:
    draft = _Draft(charset=default_charset(actions) or charset)
    present = {column.name.lower() for column in before.columns}
    dropped = {act.name.lower() for act in actions if isinstance(act, Drop)}
    _check_columns_exist(present, actions)
    for column in before.columns:
        if column.name.lower() not in dropped:
            _keep(draft, column, actions)
    for action in actions:
        if isinstance(action, Change):
            _move(draft, draft.kept.get(action.was.lower()), action.definition)
        elif isinstance(action, Add) and not (action.lenient and action.definition.name.lower() in present - dropped):
            _move(draft, _added(draft, action.definition), action.definition)
    for placed, follows in draft.moves:
        _place(draft.columns, placed, follows)
    names = [placed.column.name.lower() for placed in draft.columns]
    for name in names:
        if names.count(name) > 1:
            raise _InvalidAction(f"column {name} already exists")
    return draft


def _check_columns_exist(present: set[str], actions: Iterable[Action]) -> None:
    for action in actions:
        if isinstance(action, Drop | Show):
            name = action.name
        elif isinstance(action, Change | RenameColumn):
            name = action.was
        else:
            continue
        lenient = not isinstance(action, Show) and action.lenient
        if name.lower() not in present and not lenient:
            raise _InvalidAction(f"column {name} does not exist")


def _keep(draft: _Draft, column: Column, actions: Iterable[Action]) -> None:
    """Keep a column, as changed by the actions."""
    was = column.name
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
            if action.definition.generated:
                origin = Origin(None, action.definition.fill(column))
    placed = _Placed(column, origin)
    draft.columns.append(placed)
    draft.kept[was.lower()] = placed


def _added(draft: _Draft, definition: Definition) -> _Placed:
    column = definition.within(draft.charset)
    placed = _Placed(column, Origin(None, definition.fill(column)))
    draft.columns.append(placed)
    return placed


def _move(draft: _Draft, placed: _Placed | None, definition: Definition) -> None:
    if placed is not None and definition.follows is not None:
        draft.moves.append((placed, definition.follows))


def _place(columns: list[_Placed], placed: _Placed, follows: str | None) -> None:
    columns.remove(placed)
    names = [other.column.name.lower() for other in columns]
    if follows and follows.lower() not in names:
        raise _InvalidAction(f"column {follows} does not exist")
    columns.insert(names.index(follows.lower()) + 1 if follows else 0, placed)


def _key(before: TableSchema, draft: _Draft, actions: Iterable[Action]) -> tuple[str, ...]:
    """The new key: the existing key without dropped columns, unless it is dropped or replaced."""
    stays = () if any(isinstance(action, DropKey) for action in actions) else before.primary_key
    present = {placed.column.name.lower(): placed.column.name for placed in draft.columns}
    # A column that replaces one that is dropped in the same statement is part of the key.
    kept = {was: placed.column.name for was, placed in draft.kept.items()}
    followed = (kept.get(name.lower()) or present.get(name.lower()) for name in stays)
    key = tuple(name for name in followed if name is not None)
    for action in actions:
        if isinstance(action, SetKey) and not (action.lenient and key):
            missing = [name for name in action.columns if name.lower() not in present]
            if missing or not action.columns:
                raise _InvalidAction("the columns of the primary key are unknown")
            key = tuple(present[name.lower()] for name in action.columns)
        elif isinstance(action, (Add, Change)) and action.definition.key:
            key = (present[action.definition.name.lower()],)
    return key


def _unique_key(before: TableSchema, key: tuple[str, ...], actions: Iterable[Action]) -> str:
    """The name of the unique index that is the key, '' if there is none."""
    name = before.unique_key if key else ""
    for action in actions:
        if isinstance(action, SetKey) or (isinstance(action, (Add, Change)) and action.definition.key):
            return ""
        if isinstance(action, RenameIndex) and action.was.lower() == before.unique_key.lower():
            name = action.name if key else ""
    return name
