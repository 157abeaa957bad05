"""A statement's text without what it takes from its session: the default schema, explicit_defaults_for_timestamp."""

from collections.abc import Iterator

from dmdelta.ddl.parse.actions import Add, Change
from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.ddl.parse.rewriting import Names, Place, name_places, replaced
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.model.statement import Session


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
    _, actions = altered_table(sql, "") or (None, ())
    for action in actions:
        definition = action.definition if isinstance(action, (Add, Change)) else None
        if definition is not None and definition.implicit and not definition.key:
            yield Place(definition.type_end, definition.type_end, " NULL")
