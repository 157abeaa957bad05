"""The tables and databases that a DDL statement changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dmdelta.ddl.tokens import Cursor, split_at_commas, tokenize
from dmdelta.model.schema import TableName

DdlOp = Literal[
    "create_table",
    "alter_table",
    "drop_table",
    "rename_table",
    "truncate_table",
    "create_index",
    "drop_index",
    "create_database",
    "alter_database",
    "drop_database",
]

_DATABASE_OPTIONS = ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "READ")


@dataclass(frozen=True, slots=True)
class StatementTarget:
    """A table (or, with `table` None, a database) that a statement changes, and how."""

    op: DdlOp
    schema: str
    table: str | None


def statement_targets(sql: str, default_schema: str) -> tuple[StatementTarget, ...]:
    """The objects that a statement changes, in order; empty for statements that change no table: views, users,
    routines, temporary tables, transaction control. A rename names the old and the new table; an ALTER TABLE that moves
    rows to or from another table names this table last. Never raises.
    """
    return tuple(_targets(statement_cursor(sql), default_schema))


def is_conditional(sql: str) -> bool:
    """Whether it is a CREATE … IF NOT EXISTS of a table or database: an existing one is unchanged. Never raises."""
    cursor = statement_cursor(sql)
    return cursor.accept("CREATE") and bool(
        cursor.accept_any("TABLE", "DATABASE", "SCHEMA") and cursor.accept("IF", "NOT", "EXISTS")
    )


def renamed_tables(sql: str, default_schema: str) -> list[tuple[TableName, TableName]]:
    """The former and the new name of each table of a RENAME TABLE; empty for other statements. Never raises."""
    cursor = statement_cursor(sql)
    if not cursor.accept("RENAME") or not cursor.accept_any("TABLE", "TABLES"):
        return []
    return list(renames(cursor, default_schema))


def renames(cursor: Cursor, default_schema: str) -> Iterator[tuple[TableName, TableName]]:
    """Read what follows RENAME TABLE: the former and the new name of each table."""
    skip_if_exists(cursor)
    for part in split_at_commas(cursor.rest()):
        pair = Cursor(part)
        was = pair.table_name(default_schema)
        while not pair.ended and not pair.accept("TO"):
            pair.take()
        to = pair.table_name(default_schema)
        if was is not None and to is not None:
            yield was, to


def dropped_index(sql: str, default_schema: str) -> tuple[TableName, str] | None:
    """The table and the index of DROP INDEX, or of CREATE OR REPLACE INDEX; None for others. Never raises."""
    cursor = statement_cursor(sql)
    if not (cursor.accept("DROP") or cursor.accept("CREATE", "OR", "REPLACE")):
        return None
    accept_modifiers(cursor)
    return _named_index(cursor, default_schema)


def created_unique_index(sql: str, default_schema: str) -> tuple[TableName, str] | None:
    """The table and the index of CREATE UNIQUE INDEX; None for others. Never raises."""
    cursor = statement_cursor(sql)
    if not cursor.accept("CREATE"):
        return None
    cursor.accept("OR", "REPLACE")
    is_unique = "UNIQUE" in accept_modifiers(cursor)
    return _named_index(cursor, default_schema) if is_unique else None


def accept_modifiers(cursor: Cursor) -> set[str]:
    """Consume the words between the verb and TABLE or INDEX."""
    found = set[str]()
    while word := cursor.accept_any("ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"):
        found.add(word)
    return found


def _named_index(cursor: Cursor, default_schema: str) -> tuple[TableName, str] | None:
    if not cursor.accept("INDEX"):
        return None
    skip_if_exists(cursor)
    index = cursor.identifier()
    while not cursor.ended and not cursor.accept("ON"):
        cursor.take()
    name = cursor.table_name(default_schema)
    return None if index is None or name is None else (name, index)


def statement_cursor(sql: str) -> Cursor:
    """A cursor at the statement's first keyword, after MariaDB's `SET STATEMENT … FOR`."""
    tokens = tokenize(sql)
    if [token.keyword for token in tokens[:2]] == ["SET", "STATEMENT"]:
        words = [token.keyword for token in tokens]
        tokens = tokens[words.index("FOR") + 1 :] if "FOR" in words else []
    return Cursor(tokens)


def skip_wait(cursor: Cursor) -> None:
    """Consume MariaDB's WAIT n or NOWAIT, which come before the actions of an ALTER TABLE."""
    if cursor.accept("WAIT"):
        cursor.take()
    cursor.accept("NOWAIT")


def at_new_name(action: Cursor) -> bool:
    """Move to the new name in an action that renames the table; False for any other action."""
    if not action.accept("RENAME") or action.peek() in ("INDEX", "KEY", "COLUMN"):
        return False
    action.accept_any("TO", "AS", "=")
    return True


def at_partner(action: Cursor) -> bool:
    """Move to the other table in an action that moves rows between a partition and a table; False for any other."""
    if action.accept("EXCHANGE", "PARTITION") or action.accept("CONVERT", "PARTITION"):
        while not action.ended and not action.accept("TABLE"):
            action.take()
        return not action.ended
    return action.accept("CONVERT", "TABLE")


def _targets(cursor: Cursor, default: str) -> Iterator[StatementTarget]:
    verb = cursor.accept_any("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
    if verb == "TRUNCATE":
        cursor.accept("TABLE")
        yield from _one(cursor, "truncate_table", default)
    elif verb == "RENAME":
        if cursor.accept_any("TABLE", "TABLES"):
            for pair in renames(cursor, default):
                yield from (StatementTarget("rename_table", *name) for name in pair)
    elif verb:
        replaces = cursor.accept("OR", "REPLACE")
        accept_modifiers(cursor)
        yield from _on_object(cursor, verb, default, replaces=replaces)


def _on_object(cursor: Cursor, verb: str, default: str, *, replaces: bool) -> Iterator[StatementTarget]:
    kind = cursor.accept_any("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA")
    if kind in ("DATABASE", "SCHEMA"):
        yield from _database(cursor, verb, default)
    elif kind == "INDEX":
        while not cursor.ended and not cursor.accept("ON"):
            cursor.take()
        # CREATE OR REPLACE INDEX drops the existing one.
        yield from _one(cursor, "create_index" if verb == "CREATE" and not replaces else "drop_index", default)
    elif kind and verb == "DROP":
        skip_if_exists(cursor)
        for part in split_at_commas(cursor.rest()):
            yield from _one(Cursor(part), "drop_table", default)
    elif kind and verb == "CREATE":
        yield from _one(cursor, "create_table", default)
    elif kind:
        yield from _alter_table(cursor, default)


def _alter_table(cursor: Cursor, default: str) -> Iterator[StatementTarget]:
    yield from _one(cursor, "alter_table", default)
    skip_wait(cursor)
    for part in split_at_commas(cursor.rest()):
        action = Cursor(part)
        if at_new_name(action):
            yield from _one(action, "rename_table", default)
        elif at_partner(action):
            yield from _one(action, "alter_table", default)


def _database(cursor: Cursor, verb: str, default: str) -> Iterator[StatementTarget]:
    skip_if_exists(cursor)
    ops: dict[str, DdlOp] = {"CREATE": "create_database", "ALTER": "alter_database", "DROP": "drop_database"}
    name = default if at_unnamed_database(cursor, verb) else cursor.identifier()
    if name is not None:
        yield StatementTarget(ops[verb], name, None)


def at_unnamed_database(cursor: Cursor, verb: str) -> bool:
    """Whether an option follows instead of a database's name: ALTER DATABASE then alters the default one."""
    return verb == "ALTER" and cursor.peek() in _DATABASE_OPTIONS


def _one(cursor: Cursor, op: DdlOp, default: str) -> Iterator[StatementTarget]:
    skip_if_exists(cursor)
    name = cursor.table_name(default)
    if name is not None:
        yield StatementTarget(op, *name)


def skip_if_exists(cursor: Cursor) -> None:
    """Consume IF EXISTS or IF NOT EXISTS, which come before a name."""
    _ = cursor.accept("IF", "NOT", "EXISTS") or cursor.accept("IF", "EXISTS")
