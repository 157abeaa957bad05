"""The actions of an ALTER TABLE, as records."""

from collections.abc import Iterator
from dataclasses import dataclass

from dmdelta.ddl.parse.columns import Definition, parse_definition
from dmdelta.ddl.tokens import Cursor, Kind, Token, split_at_commas
from dmdelta.ddl.types.type_words import charset_named
from dmdelta.model.schema import TableName


@dataclass(frozen=True, slots=True)
class Add:
    """Adds a column; `lenient` (here and below): IF NOT EXISTS or IF EXISTS."""

    definition: Definition
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Redefines a column: MODIFY and CHANGE."""

    was: str
    definition: Definition
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Drops a column."""

    name: str
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Renames a column, which keeps its position."""

    was: str
    name: str
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """Makes a column visible or invisible."""

    name: str
    visible: bool


@dataclass(frozen=True, slots=True)
class SetKey:
    """Adds a primary key."""

    columns: tuple[str, ...]
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """Drops the primary key."""


@dataclass(frozen=True, slots=True)
class DropIndex:
    """Drops an index, or a constraint of this name, other than the primary key."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """Renames an index."""

    was: str
    name: str


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """Adds a unique index: with ALTER IGNORE, rows may be deleted."""


@dataclass(frozen=True, slots=True)
class Convert:
    """Converts all text columns to a character set, None if the statement does not name it."""

    charset: str | None


@dataclass(frozen=True, slots=True)
class DefaultCharset:
    """The character set of columns that the statement defines without one of their own."""

    charset: str | None


@dataclass(frozen=True, slots=True)
class RenameTo:
    """Renames the table."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Empty:
    """Deletes all rows."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Adds or removes rows that the log does not identify.

    Attributes:
        other: the table that exchanges rows with the altered one, None for none.
        gains: the altered table may have rows afterwards, even if it has none before.
    """

    reason: str
    other: TableName | None = None
    gains: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """An action that is not recognized: its first words."""

    text: str


Action = (
    Add
    | Change
    | Drop
    | RenameColumn
    | Show
    | SetKey
    | DropKey
    | DropIndex
    | RenameIndex
    | UniqueIndex
    | Convert
    | DefaultCharset
    | RenameTo
    | Empty
    | Doubt
    | Unknown
)


def renamed_column(action: Action) -> tuple[str, str] | None:
    """A column's names, in lower case, before and after an action that renames it; None: it renames none."""
    if isinstance(action, RenameColumn):
        return action.was.lower(), action.name.lower()
    if isinstance(action, Change) and action.was.lower() != action.definition.name.lower():
        return action.was.lower(), action.definition.name.lower()
    return None


def given_column(action: Action) -> str:
    """The column name, in lower case, that exists after an action but not before; '' for none."""
    if isinstance(action, Add):
        return action.definition.name.lower()
    return (renamed_column(action) or ("", ""))[1]


def taken_column(action: Action) -> str:
    """The column name, in lower case, that no longer exists after an action; '' for none."""
    if isinstance(action, Drop):
        return action.name.lower()
    return (renamed_column(action) or ("", ""))[0]


def first_words(tokens: list[Token]) -> str:
    """The first words of an action, for messages."""
    return " ".join(token.keyword or token.text for token in tokens[:3])


def key_columns(cursor: Cursor) -> tuple[str, ...]:
    """The columns of the index whose column list comes next, or after its name and type; empty if there is none."""
    while not cursor.ended and cursor.peek() != "(":
        cursor.take()
    parts = split_at_commas(cursor.parenthesized() or [])
    return tuple(part[0].text for part in parts)


def is_index(part: list[Token]) -> bool:
    """Whether a part of a table's definition is an index or a constraint rather than a column."""
    first, second = part[0], part[1].keyword if len(part) > 1 else ""
    if first.kind is not Kind.WORD:
        return False
    if first.keyword == "VECTOR":
        return second in ("INDEX", "KEY")
    if first.keyword == "PERIOD":
        return second == "FOR"
    return first.keyword in (
        "CONSTRAINT",
        "PRIMARY",
        "UNIQUE",
        "INDEX",
        "KEY",
        "FULLTEXT",
        "SPATIAL",
        "FOREIGN",
        "CHECK",
    )


def index_actions(part: list[Token]) -> Iterator[Action]:
    """The effect of an index or a constraint in a table's definition: only keys and unique indexes matter."""
    cursor = Cursor(part)
    if cursor.accept("CONSTRAINT") and cursor.peek() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        cursor.accept("IF", "NOT", "EXISTS")
        cursor.identifier()
    if cursor.accept("PRIMARY"):
        cursor.accept("KEY")
        lenient = cursor.accept("IF", "NOT", "EXISTS")
        yield SetKey(key_columns(cursor), lenient)
    elif cursor.accept("UNIQUE"):
        yield UniqueIndex()
    elif cursor.accept("PERIOD", "FOR", "SYSTEM_TIME"):
        yield Doubt(VERSIONING)


def column_actions(part: list[Token], *, lenient: bool = False, mariadb: bool = False) -> Iterator[Action]:
    """The effect of a new column's definition."""
    definition = parse_definition(Cursor(part), mariadb=mariadb)
    if definition is None:
        yield Unknown(first_words(part))
        return
    yield Add(definition, lenient)
    if definition.versioned:
        yield Doubt(VERSIONING)


def charset_option(cursor: Cursor) -> DefaultCharset | None:
    """Consume `[DEFAULT] CHARACTER SET [=] x` or COLLATE; None if neither comes next."""
    cursor.accept("DEFAULT")
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET") or cursor.accept_any("CHARSET", "COLLATE"):
        cursor.accept("=")
        token = cursor.take()
        return DefaultCharset(charset_named(token.text) if token else None)
    return None


LIKE_A_SEQUENCE = "the log does not tell a table with the columns of a sequence from a sequence"
VERSIONING = "a table with system versioning has row history that silver does not keep"
