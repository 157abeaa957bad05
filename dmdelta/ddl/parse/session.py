"""A statement's text without what it takes from its session: the default schema."""

from dmdelta.ddl.parse.rewriting import Names, Place, name_places, replaced
from dmdelta.ddl.parse.statements import statement_targets


def without_session(sql: str, default_schema: str) -> str:
    """The text that has the same effect in a session whose default schema is that of any of the statement's tables.

    Unqualified names are qualified, unless all tables are in the default schema. Never raises.
    """
    places: list[Place] = []
    if any(target.table and target.schema != default_schema for target in statement_targets(sql, default_schema)):
        places += name_places(sql, Names(default_schema, lambda name: name, lambda name: name), unqualified=True)
    return replaced(sql, places)
