"""The actions of an ALTER TABLE, told apart by what they do to the values in a table."""

import re
from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.columns import Definition, parse_definition
from dmdelta.ddl.statements import statement_cursor
from dmdelta.ddl.tokens import Cursor, Kind, Token, split_at_commas

_INDEX_WORDS = ("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "FOREIGN", "CHECK", "PARTITION", "PERIOD")
_OPTIONS = re.compile(
    r"ENGINE|TYPE|AUTO_INCREMENT|AVG_ROW_LENGTH|CHECKSUM|COMMENT|COMPRESSION|CONNECTION|DATA|DELAY_KEY_WRITE|ENCRYPTION"
    r"|ENGINE_ATTRIBUTE|INSERT_METHOD|KEY_BLOCK_SIZE|MAX_ROWS|MIN_ROWS|PACK_KEYS|PASSWORD|ROW_FORMAT|SECONDARY_ENGINE"
    r"|SECONDARY_LOAD|SECONDARY_UNLOAD|STATS_\w+|TABLESPACE|UNION|CHARACTER|CHARSET|COLLATE|DEFAULT|ALGORITHM|LOCK|ORDER"
    r"|FORCE|ENABLE|DISABLE|WITH|WITHOUT|REMOVE|REORGANIZE|COALESCE|REBUILD|ANALYZE|CHECK|OPTIMIZE|REPAIR|UPGRADE"
    r"|PARTITION|PARTITIONS|SUBPARTITION|PAGE_\w+|TRANSACTIONAL|ALTER|AUTOEXTEND_SIZE|ENCRYPTED|ENCRYPTION_KEY_ID"
)
"""What an action may begin with that changes no value: table options, partitioning, defaults of columns."""


class ActionKind(Enum):
    """What an action does to the values in a table."""

    ADD = "add"
    MODIFY = "modify"
    HARMLESS = "harmless"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    Attributes:
        text: its first words, for messages.
        old_name: the column that CHANGE renames.
        if_not_exists: ADD COLUMN IF NOT EXISTS.
    """

    kind: ActionKind
    text: str
    columns: tuple[Definition, ...] = ()
    old_name: str | None = None
    if_not_exists: bool = False


def alter_actions(sql: str) -> tuple[Action, ...]:
    """The actions of an ALTER TABLE in their order."""
    cursor = statement_cursor(sql)
    while not cursor.ended and not cursor.accept_any("TABLE", "TABLES"):
        cursor.take()
    cursor.accept("IF", "EXISTS")
    cursor.table_name("")
    if cursor.accept("WAIT"):
        cursor.take()
    cursor.accept("NOWAIT")
    return tuple(_action(part) for part in split_at_commas(cursor.rest()))


def _action(tokens: list[Token]) -> Action:
    cursor = Cursor(tokens)
    text = " ".join(token.keyword or token.text for token in tokens[:2])
    harmless, other = Action(ActionKind.HARMLESS, text), Action(ActionKind.OTHER, text)
    verb = cursor.accept_any("ADD", "MODIFY", "CHANGE", "DROP", "RENAME", "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT")
    if verb == "ADD":
        return _add(cursor, text)
    if verb in ("MODIFY", "CHANGE"):
        cursor.accept("COLUMN")
        cursor.accept("IF", "EXISTS")
        old_name = cursor.identifier() if verb == "CHANGE" else None
        definition = parse_definition(cursor)
        return Action(ActionKind.MODIFY, text, (definition,), old_name) if definition else other
    if verb == "DROP":
        return harmless if _drops_no_value(cursor) else other
    if verb == "RENAME":
        return harmless if cursor.peek() in ("INDEX", "KEY") else other
    if verb:
        return other
    return harmless if _OPTIONS.fullmatch(cursor.peek()) or cursor.peek(1) == "=" else other


def _add(cursor: Cursor, text: str) -> Action:
    if cursor.accept("CONSTRAINT") and cursor.peek() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        cursor.identifier()
    if cursor.accept("PRIMARY"):
        return Action(ActionKind.OTHER, "ADD PRIMARY KEY")
    if cursor.peek() in _INDEX_WORDS:
        return Action(ActionKind.HARMLESS, text)
    if cursor.accept("SYSTEM", "VERSIONING"):
        return Action(ActionKind.OTHER, text)
    cursor.accept("COLUMN")
    lenient = cursor.accept("IF", "NOT", "EXISTS")
    inner = cursor.parenthesized()
    if inner is None:
        definition = parse_definition(cursor)
        definitions: tuple[Definition, ...] = (definition,) if definition else ()
    else:
        parts = [part for part in split_at_commas(inner) if not _is_index(part)]
        if any(token.keyword == "PRIMARY" for part in split_at_commas(inner) for token in part):
            return Action(ActionKind.OTHER, "ADD PRIMARY KEY")
        definitions = tuple(found for part in parts if (found := parse_definition(Cursor(part))) is not None)
    if not definitions:
        return Action(ActionKind.OTHER, text)
    return Action(ActionKind.ADD, text, definitions, if_not_exists=lenient)


def _is_index(part: list[Token]) -> bool:
    return part[0].kind is Kind.WORD and part[0].keyword in (*_INDEX_WORDS, "CONSTRAINT")


def _drops_no_value(cursor: Cursor) -> bool:
    """An index or a constraint other than the primary key goes; not a column, a partition or the key."""
    kind = cursor.accept_any("INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK")
    cursor.accept("KEY")
    cursor.accept("IF", "EXISTS")
    name = cursor.identifier()
    return bool(kind) and name is not None and name.upper() != "PRIMARY"
