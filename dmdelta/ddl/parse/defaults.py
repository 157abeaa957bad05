"""The default character sets that a statement sets for databases and for existing tables."""

from collections.abc import Iterable
from typing import Literal

from dmdelta.ddl.parse.actions import Action, Convert, charset_option
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.parse.statements import at_unnamed_database, statement_cursor
from dmdelta.ddl.tokens import Cursor
from dmdelta.model.schema import TableName

Verb = Literal["CREATE", "ALTER"]


def database_charset(sql: str, default_schema: str) -> tuple[Verb, str, str | None] | None:
    """CREATE or ALTER DATABASE: the verb, the database, and the character set it names or None.

    None for any other statement. Never raises.
    """
    cursor = statement_cursor(sql)
    verb: Verb = "CREATE" if cursor.peek() == "CREATE" else "ALTER"
    if not cursor.accept(verb):
        return None
    cursor.accept("OR", "REPLACE")
    if not cursor.accept_any("DATABASE", "SCHEMA"):
        return None
    cursor.accept("IF", "NOT", "EXISTS")
    name = default_schema if at_unnamed_database(cursor, verb) else cursor.identifier()
    return None if name is None else (verb, name, _first_charset(cursor))


def altered_table(
    sql: str, default_schema: str, *, mariadb: bool = False
) -> tuple[TableName, tuple[Action, ...]] | None:
    """The table of an ALTER TABLE and its actions; None for any other statement. Never raises."""
    cursor = statement_cursor(sql)
    if not cursor.accept("ALTER"):
        return None
    while cursor.accept_any("ONLINE", "OFFLINE", "IGNORE"):
        pass
    if not cursor.accept("TABLE"):
        return None
    cursor.accept("IF", "EXISTS")
    name = cursor.table_name(default_schema)
    return None if name is None else (name, alter_actions(cursor.rest(), default_schema, mariadb=mariadb))


def converts(actions: Iterable[Action]) -> bool:
    """Whether all text columns change their character set, or only their collation."""
    return any(isinstance(action, Convert) for action in actions)


def _first_charset(cursor: Cursor) -> str | None:
    charset: str | None = None
    while not cursor.ended:
        option = charset_option(cursor)
        if option is None:
            cursor.take()
        elif option.charset is not None:
            charset = charset or option.charset
    return charset
