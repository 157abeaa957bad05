"""The effects of one DDL statement on a source's tables, in order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dmdelta.ddl.parse.actions import VERSIONING, Convert, Doubt, DropKey, Empty, RenameTo
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.parse.statements import accept_modifiers, created_unique_index, renames, statement_cursor
from dmdelta.ddl.tokens import Cursor, split_at_commas
from dmdelta.ddl.tracking.creation import read_creation, sequence_creation
from dmdelta.ddl.tracking.effects import Altered, Dropped, Effect, Moved, Renamed, Truncated, Unread
from dmdelta.ddl.tracking.structures import altered, is_nothing, is_unique
from dmdelta.model.schema import TableName, TableSchema

StructureOf = Callable[[TableName], TableSchema | None]
CharsetOf = Callable[[str, str | None], str | None]
"""(schema, table) → the table's default character set, (schema, None) → the database's; None if unknown."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The context in which a statement is parsed."""

    default_schema: str
    structure_of: StructureOf
    mariadb: bool
    charset_of: CharsetOf


def statement_effects(
    sql: str,
    default_schema: str,
    structure_of: StructureOf,
    *,
    mariadb: bool = False,
    charset_of: CharsetOf = lambda _schema, _table: None,
) -> tuple[Effect, ...]:
    """The effects of a MySQL or MariaDB statement on tables. Never raises.

    Empty for statements that change neither columns nor key nor rows, for an ALTER of an unknown table (unless it makes
    the table one that silver cannot have), and for DROP DATABASE: only the caller knows the database's tables,
    `statement_targets` names it.

    The columns in structures are those of the statement: if the character set of a text column is None, its length
    counts characters, and an unknown type is the statement's own word.

    Args:
        structure_of: a table's structure before the statement, None if unknown.
        mariadb: the statement is MariaDB's, where JSON is LONGTEXT.
        charset_of: the default character sets before the statement.
    """
    return tuple(_effects(statement_cursor(sql), _Context(default_schema, structure_of, mariadb, charset_of)))


def adds_unique_index(sql: str, table: TableName) -> bool:
    """Whether a statement adds a unique index or a key to an existing table. Never raises."""
    created = created_unique_index(sql, table[0])
    if created is not None:
        return created[0] == table
    cursor = statement_cursor(sql)
    if not cursor.accept("ALTER"):
        return False
    accept_modifiers(cursor)
    if not cursor.accept("TABLE"):
        return False
    cursor.accept("IF", "EXISTS")
    return cursor.table_name(table[0]) == table and any(map(is_unique, alter_actions(cursor.rest(), table[0])))


def _effects(cursor: Cursor, context: _Context) -> Iterator[Effect]:
    verb = cursor.accept_any("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
    if verb == "TRUNCATE":
        cursor.accept("TABLE")
        name = cursor.table_name(context.default_schema)
        if name is not None:
            yield Truncated(name)
    elif verb == "RENAME":
        if cursor.accept_any("TABLE", "TABLES"):
            yield from (Renamed(was, to) for was, to in renames(cursor, context.default_schema))
    elif verb:
        replaces = cursor.accept("OR", "REPLACE")
        ignore = "IGNORE" in accept_modifiers(cursor)
        yield from _on_object(cursor, verb, context, replaces=replaces, ignore=ignore)


def _on_object(cursor: Cursor, verb: str, context: _Context, *, replaces: bool, ignore: bool) -> Iterator[Effect]:
    kind = cursor.accept_any("TABLE", "TABLES", "INDEX", "SEQUENCE")
    if kind == "INDEX" and verb == "DROP":
        yield from _drop_index(cursor, context)
    elif kind in ("", "INDEX"):
        return
    elif verb == "CREATE":
        yield from _create(cursor, context, kind, replaces=replaces)
    elif verb == "DROP":
        cursor.accept("IF", "EXISTS")
        names = (Cursor(part).table_name(context.default_schema) for part in split_at_commas(cursor.rest()))
        yield from (Dropped(name) for name in names if name is not None)
    elif kind != "SEQUENCE":
        cursor.accept("IF", "EXISTS")
        name = cursor.table_name(context.default_schema)
        if name is not None:
            yield from _alter(cursor, name, context, ignore=ignore)


def _create(cursor: Cursor, context: _Context, kind: str, *, replaces: bool) -> Iterator[Effect]:
    lenient = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.table_name(context.default_schema)
    if name is None or (lenient and context.structure_of(name) is not None):
        return
    if replaces:
        yield Dropped(name)
    yield sequence_creation(cursor, name) if kind == "SEQUENCE" else read_creation(cursor, name, context)


def _drop_index(cursor: Cursor, context: _Context) -> Iterator[Effect]:
    cursor.accept("IF", "EXISTS")
    index = cursor.identifier()
    cursor.accept("ON")
    name = cursor.table_name(context.default_schema)
    before = context.structure_of(name) if name is not None and (index or "").upper() == "PRIMARY" else None
    if before is not None:
        yield altered(before, [DropKey()])


def _alter(cursor: Cursor, name: TableName, context: _Context, *, ignore: bool) -> Iterator[Effect]:
    actions = alter_actions(cursor.rest(), context.default_schema, mariadb=context.mariadb)
    before = context.structure_of(name)
    if before is not None:
        database, charset = context.charset_of(name[0], None), context.charset_of(*name)
        actions = tuple(
            replace(act, charset=database) if isinstance(act, Convert) and not act.charset else act for act in actions
        )
        effect: Altered | Unread = altered(before, actions, ignore=ignore, charset=charset)
        if isinstance(effect, Unread) or not is_nothing(effect):
            yield effect
    elif Doubt(VERSIONING) in actions:
        yield Unread(name, VERSIONING, unsupported=True)
    for action in actions:
        if isinstance(action, Empty):
            yield Truncated(name)
        elif isinstance(action, Doubt):
            moved = (name if action.gains else None, action.other)
            yield from (Moved(table, action.reason) for table in moved if table is not None)
        elif isinstance(action, RenameTo) and action.table != name:
            yield Renamed(name, action.table)
