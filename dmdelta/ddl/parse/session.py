"""A statement's text that does not depend on its session: on the default schema, explicit_defaults_for_timestamp."""

from collections.abc import Collection, Iterable, Iterator

from dmdelta.ddl.parse.actions import Action, Add, Change, SetKey
from dmdelta.ddl.parse.columns import Definition
from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.ddl.parse.rewriting import Names, Place, name_places, replaced
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.statement import Session

_NULL = " NULL"


def without_session(sql: str, session: Session) -> str:
    """The text that has the same effect in a session whose default schema is that of any of the statement's tables.

    Unqualified names are qualified, unless all tables are in the default schema. With explicit_defaults_for_timestamp,
    TIMESTAMP columns that an ALTER TABLE defines without NULL and NOT NULL get NULL: in other sessions they are NOT
    NULL. Never raises.
    """
    places = list(_nulls(sql)) if session.explicit_timestamps else []
    default_schema = session.default_schema
    if any(target.table and target.schema != default_schema for target in statement_targets(sql, default_schema)):
        places += name_places(sql, Names(default_schema, lambda name: name, lambda name: name), unqualified=True)
    return replaced(sql, places)


def _nulls(sql: str) -> Iterator[Place]:
    """NULL after each TIMESTAMP that may be NULL only in this session; columns of a new primary key may not."""
    _, actions = altered_table(sql, "") or (None, ())
    keyed = {name.lower() for action in actions if isinstance(action, SetKey) for name in action.columns}
    for definition in _definitions(actions):
        if definition.implicit and not definition.key and definition.name.lower() not in keyed:
            yield Place(definition.type_end, definition.type_end, _NULL)


def without_nulls(sql: str, key: Collection[str]) -> str:
    """An ALTER TABLE without the NULL that `without_session` writes for columns of the table's primary key, which the
    text does not name: a server refuses it there. Never raises.

    Args:
        key: the key's columns in lower case.
    """
    _, actions = altered_table(sql, "") or (None, ())
    ends = [definition.type_end for definition in _definitions(actions) if definition.name.lower() in key]
    places = [Place(end, end + len(_NULL), "") for end in ends if sql[end : end + len(_NULL)].upper() == _NULL]
    return replaced(sql, places)


def _definitions(actions: Iterable[Action]) -> Iterator[Definition]:
    for action in actions:
        if isinstance(action, Add | Change) and action.definition.column.type == "timestamp":
            yield action.definition
