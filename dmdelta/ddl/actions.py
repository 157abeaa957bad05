"""The actions of an ALTER TABLE, as records."""

from collections.abc import Iterator
from dataclasses import dataclass

from dmdelta.ddl.columns import Definition, parse_definition
from dmdelta.ddl.tokens import Cursor, Kind, Token, split_at_commas
from dmdelta.ddl.type_words import charset_named
from dmdelta.model.schema import TableName


@dataclass(frozen=True, slots=True)
class Add:
    """A column comes; `lenient` (here and below): unless it is there already, or if it is there."""

    definition: Definition
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A column gets a definition: MODIFY and CHANGE."""

    was: str
    definition: Definition
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """A column goes."""

    name: str
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column gets another name and keeps its place."""

    was: str
    name: str
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """A column becomes visible or invisible."""

    name: str
    visible: bool


@dataclass(frozen=True, slots=True)
class SetKey:
    """A primary key comes."""

    columns: tuple[str, ...]
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """The primary key goes."""


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """A unique index comes: with ALTER IGNORE, rows may go."""


@dataclass(frozen=True, slots=True)
class Convert:
    """All text columns get a character set, None for one that the statement does not tell."""

    charset: str | None


@dataclass(frozen=True, slots=True)
class DefaultCharset:
    """Columns that the statement defines have this character set if they tell no other."""

    charset: str | None


@dataclass(frozen=True, slots=True)
class RenameTo:
    """The table gets another name."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Empty:
    """Every row goes."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows come or go, and nobody can tell which; so they do in the table `other`, if there is one."""

    reason: str
    other: TableName | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """What nobody knows: its first words."""

    text: str


Action = (
    Add
    | Change
    | Drop
    | RenameColumn
    | Show
    | SetKey
    | DropKey
    | UniqueIndex
    | Convert
    | DefaultCharset
    | RenameTo
    | Empty
    | Doubt
    | Unknown
)


def first_words(tokens: list[Token]) -> str:
    """The first words of an action, for messages."""
    return " ".join(token.keyword or token.text for token in tokens[:3])


def key_columns(cursor: Cursor) -> tuple[str, ...]:
    """The columns of the index whose parts come next, or after its name and type; empty for none."""
    while not cursor.ended and cursor.peek() != "(":
        cursor.take()
    parts = split_at_commas(cursor.parenthesized() or [])
    return tuple(part[0].text for part in parts)


def is_index(part: list[Token]) -> bool:
    """A part of a table's definition is an index or a constraint, not a column."""
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
    """What an index or a constraint in a table's definition does: only keys and unique indexes matter."""
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
    """What the definition of a new column does."""
    definition = parse_definition(Cursor(part), mariadb=mariadb)
    if definition is None:
        yield Unknown(first_words(part))
        return
    yield Add(definition, lenient)
    if definition.versioned:
        yield Doubt(VERSIONING)


def charset_option(cursor: Cursor) -> DefaultCharset | None:
    """Pass `[DEFAULT] CHARACTER SET [=] x` or COLLATE, None if neither comes next."""
    cursor.accept("DEFAULT")
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET") or cursor.accept_any("CHARSET", "COLLATE"):
        cursor.accept("=")
        token = cursor.take()
        return DefaultCharset(charset_named(token.text) if token else None)
    return None


VERSIONING = "the rows of a table with system versioning have a history that silver does not keep"
