"""Parses the actions of an ALTER TABLE: those that affect columns, key or rows become records, others are ignored."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dmdelta.ddl.parse.actions import (
    VERSIONING,
    Action,
    Change,
    Convert,
    Doubt,
    Drop,
    DropIndex,
    DropKey,
    Empty,
    RenameColumn,
    RenameIndex,
    RenameTo,
    Show,
    Unknown,
    charset_option,
    column_actions,
    first_words,
    index_actions,
    is_index,
)
from dmdelta.ddl.parse.columns import parse_definition
from dmdelta.ddl.parse.statements import at_partner, skip_wait
from dmdelta.ddl.tokens import Cursor, Token, split_at_commas

_OPTIONS = re.compile(
    r"ENGINE|TYPE|AUTO_INCREMENT|AVG_ROW_LENGTH|CHECKSUM|COMMENT|COMPRESSION|CONNECTION|DATA|DELAY_KEY_WRITE|ENCRYPTION"
    r"|ENGINE_ATTRIBUTE|INSERT_METHOD|KEY_BLOCK_SIZE|MAX_ROWS|MIN_ROWS|PACK_KEYS|PASSWORD|ROW_FORMAT|SECONDARY_ENGINE"
    r"|SECONDARY_ENGINE_ATTRIBUTE|SECONDARY_LOAD|SECONDARY_UNLOAD|STATS_\w+|TABLESPACE|UNION|CHARACTER|CHAR|CHARSET"
    r"|COLLATE|DEFAULT|ALGORITHM|LOCK|FORCE|ENABLE|DISABLE|WITH|WITHOUT|UPGRADE|PAGE_\w+|TRANSACTIONAL|INDEX"
    r"|AUTOEXTEND_SIZE|ENCRYPTED|ENCRYPTION_KEY_ID|ITEF_QUOTES|SEQUENCE|START|START_TRANSACTION|NOWAIT|WAIT"
)
"""The first words of actions that change no value: table options."""
_PARTITION_VERBS = "ADD|DROP|TRUNCATE|EXCHANGE|DISCARD|IMPORT|REORGANIZE|COALESCE|REBUILD|ANALYZE|CHECK|OPTIMIZE|REPAIR"
_ROWS_CHANGE = ("DROP", "EXCHANGE", "DISCARD", "IMPORT")


@dataclass(frozen=True, slots=True)
class _Place:
    """The context of a statement: the default schema and the server's dialect."""

    schema: str
    mariadb: bool


def alter_actions(tokens: list[Token], default_schema: str, *, mariadb: bool = False) -> tuple[Action, ...]:
    """The actions after the table name of an ALTER TABLE, in order. Never raises."""
    place = _Place(default_schema, mariadb)
    cursor = Cursor(tokens)
    skip_wait(cursor)
    tokens = _without_partitioning(cursor.rest())
    actions = list[Action]()
    parts = split_at_commas(tokens)
    for index, part in enumerate(parts):
        if part[0].keyword == "ORDER":
            break
        if _manages_partitions(part):
            rest = [token for following in parts[index:] for token in following]
            actions.extend(_partition_actions(rest, place))
            break
        actions.extend(_actions(part, place))
    return tuple(actions)


def _without_partitioning(tokens: list[Token]) -> list[Token]:
    """The tokens before PARTITION BY or REMOVE PARTITIONING, which come last, without a comma."""
    for index, (one, other) in enumerate(itertools.pairwise(tokens)):
        if (one.keyword, other.keyword) in (("PARTITION", "BY"), ("REMOVE", "PARTITIONING")):
            return tokens[:index]
    return tokens


def _manages_partitions(part: list[Token]) -> bool:
    words = [token.keyword for token in part]
    if words[:1] == ["CONVERT"]:
        return words[1:2] in (["PARTITION"], ["TABLE"])
    return words[1:2] == ["PARTITION"] and words[0] in _PARTITION_VERBS.split("|")


def _partition_actions(tokens: list[Token], place: _Place) -> Iterator[Action]:
    cursor = Cursor(tokens)
    verb, words = cursor.peek(), [token.keyword for token in tokens]
    if verb == "TRUNCATE" and words[2:] == ["ALL"]:
        yield Empty()
    elif verb in (*_ROWS_CHANGE, "TRUNCATE", "CONVERT"):
        other = cursor.table_name(place.schema) if at_partner(cursor) else None
        reason = f"{first_words(tokens[:2])} moves rows that the log does not contain"
        yield Doubt(reason, other, gains=verb in ("EXCHANGE", "IMPORT") or words[:2] == ["CONVERT", "TABLE"])


def _actions(part: list[Token], place: _Place) -> Iterator[Action]:
    cursor, text = Cursor(part), first_words(part)
    verb = cursor.accept_any("ADD", "MODIFY", "CHANGE", "DROP", "RENAME", "ALTER", "CONVERT", "DISCARD", "IMPORT")
    if verb == "ADD":
        yield from _add(cursor, text, place)
    elif verb in ("MODIFY", "CHANGE"):
        yield _change(cursor, verb, text, place)
    elif verb == "DROP":
        yield from _drop(cursor, text)
    elif verb == "RENAME":
        yield from _rename(cursor, text, place)
    elif verb == "ALTER":
        yield from _alter(cursor)
    elif verb == "CONVERT":
        yield _convert(cursor, text)
    elif verb:
        yield Doubt(f"{text} moves rows that the log does not contain", gains=verb == "IMPORT")
    elif not part[0].keyword or not (_OPTIONS.fullmatch(part[0].keyword) or cursor.peek(1) == "="):
        yield Unknown(text)
    else:
        yield from _options(cursor)


def _options(cursor: Cursor) -> Iterator[Action]:
    """Table options: the character set of new columns, and an engine that stores no rows."""
    while not cursor.ended:
        if (option := charset_option(cursor)) is not None:
            yield option
        elif cursor.accept_any("ENGINE", "TYPE"):
            cursor.accept("=")
            token = cursor.take()
            if token is not None and token.text.upper() == "BLACKHOLE":
                yield Doubt("the engine BLACKHOLE stores no rows")
        else:
            cursor.take()


def _add(cursor: Cursor, text: str, place: _Place) -> Iterator[Action]:
    if cursor.accept("SYSTEM", "VERSIONING"):
        yield Doubt(VERSIONING)
        return
    explicit = cursor.accept("COLUMN")
    lenient = cursor.accept("IF", "NOT", "EXISTS")
    inner = cursor.parenthesized()
    if inner is None and cursor.ended:
        yield Unknown(text)
        return
    for part in split_at_commas(cursor.rest() if inner is None else inner):
        if is_index(part) and not (explicit and inner is None):
            yield from index_actions(part)
        else:
            yield from column_actions(part, lenient=lenient, mariadb=place.mariadb)


def _change(cursor: Cursor, verb: str, text: str, place: _Place) -> Action:
    cursor.accept("COLUMN")
    lenient = cursor.accept("IF", "EXISTS")
    was = cursor.identifier() if verb == "CHANGE" else None
    definition = parse_definition(cursor, mariadb=place.mariadb)
    if definition is None or (verb == "CHANGE" and was is None):
        return Unknown(text)
    return Change(was or definition.name, definition, lenient)


def _drop(cursor: Cursor, text: str) -> Iterator[Action]:
    if cursor.accept("SYSTEM", "VERSIONING") or cursor.accept("PERIOD", "FOR"):
        yield Doubt(VERSIONING)
        return
    kind = cursor.accept_any("PRIMARY", "INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK", "COLUMN")
    if kind in ("PRIMARY", "FOREIGN"):
        cursor.accept("KEY")
    lenient = cursor.accept("IF", "EXISTS")
    name = cursor.identifier()
    if kind == "PRIMARY" or (kind in ("INDEX", "KEY", "CONSTRAINT") and name is not None and name.upper() == "PRIMARY"):
        yield DropKey()
    elif name is None:
        yield Unknown(text)
    elif kind in ("", "COLUMN"):
        yield Drop(name, lenient)
    elif kind in ("INDEX", "KEY", "CONSTRAINT"):
        yield DropIndex(name)


def _rename(cursor: Cursor, text: str, place: _Place) -> Iterator[Action]:
    if cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF", "EXISTS")
        was, _, name = cursor.identifier(), cursor.accept("TO"), cursor.identifier()
        if was is not None and name is not None:
            yield RenameIndex(was, name)
        return
    if cursor.accept("COLUMN"):
        lenient = cursor.accept("IF", "EXISTS")
        was = cursor.identifier()
        cursor.accept("TO")
        name = cursor.identifier()
        yield Unknown(text) if was is None or name is None else RenameColumn(was, name, lenient)
        return
    cursor.accept_any("TO", "AS", "=")
    table = cursor.table_name(place.schema)
    yield Unknown(text) if table is None else RenameTo(table)


def _alter(cursor: Cursor) -> Iterator[Action]:
    """ALTER of a column's default or visibility; for an index or a constraint it has no effect."""
    if cursor.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        return
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    name = cursor.identifier()
    if name is not None and cursor.accept("SET") and (word := cursor.accept_any("VISIBLE", "INVISIBLE")):
        yield Show(name, word == "VISIBLE")


def _convert(cursor: Cursor, text: str) -> Action:
    cursor.accept("TO")
    option = charset_option(cursor)
    if option is None:
        return Unknown(text)
    return Convert((charset_option(cursor) or option).charset if option.charset is None else option.charset)
