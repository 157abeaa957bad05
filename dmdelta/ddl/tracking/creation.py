"""The table that a CREATE TABLE creates, as far as the statement describes it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from dmdelta.ddl.parse.actions import (
    LIKE_A_SEQUENCE,
    VERSIONING,
    Action,
    DefaultCharset,
    Doubt,
    charset_option,
    column_actions,
    index_actions,
    is_index,
)
from dmdelta.ddl.tokens import Cursor, Token, split_at_commas
from dmdelta.ddl.tracking.effects import Created, Unread
from dmdelta.ddl.tracking.structures import default_charset, new_structure
from dmdelta.ddl.types.type_words import parse_type
from dmdelta.model.schema import SEQUENCE_COLUMNS, Column, TableName, TableSchema

_TYPED = SEQUENCE_COLUMNS[:4]
"""The columns that have the type of the sequence, which MariaDB 11.5 and later let a statement choose."""
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE", "AS", "IGNORE", "REPLACE")


class Context(Protocol):
    """The context of a CREATE TABLE; `dmdelta.ddl.tracking.statement_effects` documents each part."""

    @property
    def default_schema(self) -> str: ...
    @property
    def structure_of(self) -> Callable[[TableName], TableSchema | None]: ...
    @property
    def mariadb(self) -> bool: ...
    @property
    def charset_of(self) -> Callable[[str, str | None], str | None]: ...


def read_creation(cursor: Cursor, table: TableName, context: Context) -> Created | Unread:
    """The result of a CREATE TABLE, from the text after the table name. Never raises."""
    if cursor.accept("LIKE"):
        return _like(cursor, table, context)
    inner = cursor.parenthesized()
    if inner is not None and inner[:1] and inner[0].keyword == "LIKE":
        return _like(Cursor(inner[1:]), table, context)
    options, extended = _options(cursor)
    if any(isinstance(option, Doubt) for option in options):
        return Unread(table, VERSIONING, unsupported=True)
    if inner is None or not inner or extended or inner[0].keyword in ("SELECT", "WITH", "(", "VALUES"):
        return Created(table, None)
    actions = [action for part in split_at_commas(inner) for action in _element(part, mariadb=context.mariadb)]
    if any(isinstance(action, Doubt) for action in actions):
        return Unread(table, VERSIONING, unsupported=True)
    charset = default_charset(options) or context.charset_of(table[0], None)
    structure = new_structure(table, [*actions, *options], charset)
    if context.mariadb and isinstance(structure, TableSchema) and structure.is_sequence:
        return Unread(table, LIKE_A_SEQUENCE, unsupported=True)
    return structure if isinstance(structure, Unread) else Created(table, structure, charset)


def _like(cursor: Cursor, table: TableName, context: Context) -> Created:
    name = cursor.table_name(context.default_schema)
    model = context.structure_of(name) if name is not None else None
    if name is None or model is None:
        return Created(table, None)
    return Created(table, replace(model, schema=table[0], table=table[1]), context.charset_of(*name))


def _element(part: list[Token], *, mariadb: bool) -> Iterator[Action]:
    return index_actions(part) if is_index(part) else column_actions(part, mariadb=mariadb)


def sequence_creation(cursor: Cursor, sequence: TableName) -> Created:
    """The result of a CREATE SEQUENCE, to the log a table, from the text after its name."""
    while not cursor.ended and not cursor.accept("AS"):
        cursor.take()
    kind, _ = parse_type(cursor, "") or (Column("", "bigint"), 0)
    numbers = replace(kind, nullable=False)
    types = dict.fromkeys(SEQUENCE_COLUMNS, Column("", "bigint", nullable=False)) | dict.fromkeys(_TYPED, numbers)
    types["cache_size"] = Column("", "bigint", unsigned=True, nullable=False)
    types["cycle_option"] = Column("", "tinyint", unsigned=True, nullable=False)
    columns = (replace(column, name=name) for name, column in types.items())
    return Created(sequence, TableSchema(*sequence, tuple(columns)))


def _options(cursor: Cursor) -> tuple[list[Action], bool]:
    """The relevant options, and whether a query adds further columns to the table."""
    options = list[Action]()
    while not cursor.ended:
        if (option := charset_option(cursor)) is not None:
            options.append(option)
        elif cursor.accept("WITH", "SYSTEM", "VERSIONING"):
            options.append(Doubt(VERSIONING))
        elif cursor.accept_any(*_QUERY):
            return options, True
        elif cursor.parenthesized() is None:
            cursor.take()
            if cursor.accept("="):
                cursor.take()
    # COLLATE after CHARACTER SET names the same set; an option without a charset is irrelevant.
    return [option for option in options if not isinstance(option, DefaultCharset) or option.charset], False
