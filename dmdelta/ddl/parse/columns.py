"""Column definitions in DDL text: the column, its position, and its values in existing rows."""

from dataclasses import dataclass, field, replace
from typing import Any

from dmdelta.ddl.tokens import Cursor, Kind, Token
from dmdelta.ddl.types.added_values import Fill, implicit_fill, literal_fill
from dmdelta.ddl.types.literals import NUMBER, Literal, LiteralKind, bytes_literal, text_in_charset
from dmdelta.ddl.types.type_words import charset_named, in_charset, parse_type
from dmdelta.model.schema import Column
from dmdelta.model.type_names import BLOBS, INTEGERS, TEXTS, WITH_DEFAULT

_ASCII_SUPERSETS = ("_ASCII", "_BINARY", "_LATIN1", "_UTF8", "_UTF8MB3", "_UTF8MB4")
"""Before a literal of ASCII characters, these change nothing."""
_HEXADECIMAL = 16
_NUMERIC = ("year", "decimal", "float", "double", *INTEGERS)
_TAKE_ONE = ("COMMENT", "COLUMN_FORMAT", "STORAGE", "SRID", "CONSTRAINT")


@dataclass(frozen=True, slots=True)
class Definition:
    """A column definition.

    Attributes:
        column: with the character set in the definition itself.
        length: the length written after the type, 0 for none.
        follows: the column it is placed after, '' for FIRST, None for no clause.
        default: the literal after DEFAULT, None for none or NULL.
        computed: the clause that generates values which the statement does not determine, '' for none.
        key: the column alone becomes the primary key.
        unique: the column gets a unique index.
        charset: the character set in the clauses, None for none.
        versioned: part of MariaDB's system versioning.
        rounds: a FLOAT or DOUBLE with a number of decimals, to which the server rounds.
        implicit: a TIMESTAMP without NULL and NOT NULL, which is NOT NULL unless explicit_defaults_for_timestamp is ON.
        type_end: the offset in the statement after the type.
    """

    name: str
    column: Column
    length: int
    follows: str | None = None
    default: Literal | None = None
    null_default: bool = False
    computed: str = ""
    nullable: bool = True
    visible: bool = True
    key: bool = False
    unique: bool = False
    charset: str | None = None
    versioned: bool = False
    rounds: bool = False
    implicit: bool = False
    type_end: int = field(default=0, compare=False)

    @property
    def generated(self) -> bool:
        """Whether the values are computed from other columns, regardless of the column's previous values."""
        return self.computed in ("GENERATED", "AS")

    def within(self, charset: str | None) -> Column:
        """The column in a table or statement with a default character set, None if it is unknown."""
        return self.column if self.column.charset else in_charset(self.column, charset, self.length)

    def fill(self, column: Column) -> Fill:
        """The value in existing rows, given the column's type."""
        if self.computed:
            return Fill(unknown=f"{self.computed} generates values for existing rows that are not in the log")
        if self.default is not None:
            if self.rounds and not self.default.text.isdecimal():
                return Fill(unknown=f"the server rounds the default of column {column.name}")
            return literal_fill(column, self.default)
        if self.implicit and not self.null_default:
            return Fill(unknown=f"explicit_defaults_for_timestamp is not ON: the default of {column.name} is unknown")
        return Fill() if self.nullable or self.null_default else implicit_fill(column)


def parse_definition(cursor: Cursor, *, mariadb: bool = False) -> Definition | None:
    """Parse `name type clauses [FIRST | AFTER c]` up to the cursor's end; None if there is no name or no type."""
    name = cursor.identifier()
    serial = cursor.peek() == "SERIAL"
    start = cursor.position
    parsed = parse_type(cursor, name, mariadb=mariadb) if name is not None else None
    if name is None or parsed is None:
        return None
    column, length = parsed
    words = cursor.since(start)
    rounds = column.type in ("float", "double") and any(token.keyword == "," for token in words)
    clauses: dict[str, Any] = {"nullable": False, "unique": True, "computed": "SERIAL"} if serial else {}
    while not cursor.ended:
        _parse_clause(cursor, clauses)
    if column.type == "timestamp" and not {"nullable", "versioned"} & set(clauses):
        _apply_implicit_default(clauses, mariadb=mariadb)
    if "default" in clauses:
        _apply_default(column, clauses, mariadb=mariadb)
    definition = replace(Definition(name, column, length, rounds=rounds, type_end=words[-1].end), **clauses)
    if column.charset is None:
        column = in_charset(column, definition.charset, length)
    literal = definition.default if column.type in WITH_DEFAULT else None
    default = text_in_charset(literal, None) if literal is not None else None
    column = replace(column, nullable=definition.nullable, visible=definition.visible, default=default)
    return replace(definition, column=column)


def _apply_implicit_default(clauses: dict[str, Any], *, mariadb: bool) -> None:
    """A TIMESTAMP is NOT NULL without explicit_defaults_for_timestamp; there MariaDB ignores DEFAULT NULL, an error in
    MySQL.
    """
    if clauses.get("computed") not in ("GENERATED", "AS"):
        clauses.update(implicit=True, nullable=False, null_default="null_default" in clauses and not mariadb)


def _apply_default(column: Column, clauses: dict[str, Any], *, mariadb: bool) -> None:
    """MySQL has no literal defaults of TEXT and BLOB: outside strict mode it ignores DEFAULT ''. MariaDB reads x'31' as
    text, but 0x31 and b'110001' as numbers.
    """
    if not mariadb and column.type in (*TEXTS, *BLOBS):
        del clauses["default"]
    elif mariadb and clauses["default"].base == _HEXADECIMAL and column.type in _NUMERIC:
        del clauses["default"]
        clauses["computed"] = "DEFAULT of bytes"


def _parse_clause(cursor: Cursor, clauses: dict[str, Any]) -> None:
    if cursor.accept("NOT", "NULL"):
        clauses["nullable"] = False
    elif cursor.accept("NULL"):
        clauses["nullable"] = True
    elif cursor.accept("DEFAULT"):
        _parse_default(cursor, clauses)
    elif cursor.accept("ON"):
        _parse_event(cursor)
    elif cursor.accept("FIRST"):
        clauses["follows"] = ""
    elif cursor.accept("AFTER"):
        clauses["follows"] = cursor.identifier()
    elif cursor.accept("SERIAL", "DEFAULT", "VALUE"):
        clauses.update(computed="SERIAL", nullable=False, unique=True)
    elif cursor.accept("UNIQUE"):
        cursor.accept("KEY")
        clauses["unique"] = True
    elif cursor.accept("PRIMARY", "KEY") or cursor.accept_any("PRIMARY", "KEY"):
        clauses.update(key=True, nullable=False)
    elif cursor.accept("INVISIBLE"):
        clauses["visible"] = False
    elif cursor.accept("AS", "ROW") or cursor.accept("WITH", "SYSTEM", "VERSIONING"):
        clauses["versioned"] = True
    elif word := cursor.accept_any("AUTO_INCREMENT", "GENERATED", "AS"):
        clauses["computed"] = word
        if word == "AUTO_INCREMENT":
            clauses["nullable"] = False
    else:
        _parse_other(cursor, clauses)


def _parse_other(cursor: Cursor, clauses: dict[str, Any]) -> None:
    """Clauses that determine the character set, or nothing relevant."""
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET") or cursor.accept_any("CHARSET", "COLLATE"):
        cursor.accept("=")
        token = cursor.take()
        clauses["charset"] = (charset_named(token.text) if token else None) or clauses.get("charset")
    elif word := cursor.accept_any("ASCII", "UNICODE", "BYTE"):
        clauses["charset"] = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}[word]
    elif cursor.accept_any(*_TAKE_ONE):
        cursor.accept("=")
        cursor.take()
    elif cursor.parenthesized() is None:
        cursor.take()


def _parse_event(cursor: Cursor) -> None:
    """Consume what follows ON: `UPDATE CURRENT_TIMESTAMP`, `DELETE SET NULL`; a parenthesis is the next clause."""
    cursor.take()
    cursor.accept_any("SET", "NO")
    cursor.take()


def _parse_default(cursor: Cursor, clauses: dict[str, Any]) -> None:
    sign = cursor.accept_any("+", "-")
    token = cursor.take()
    introducer = token.keyword if token is not None and token.keyword.startswith("_") else ""
    if introducer:
        token = cursor.take()
    if token is None:
        return
    if token.keyword == "NULL":
        clauses["null_default"] = True
    elif token.keyword in ("TRUE", "FALSE"):
        clauses["default"] = Literal("1" if token.keyword == "TRUE" else "0", LiteralKind.NUMBER)
    elif token.keyword in ("B", "X") and (digits := cursor.string()) is not None:
        _parse_digits(digits, 2 if token.keyword == "B" else 16, introducer, clauses)
    elif token.kind is Kind.STRING:
        text = token.text + "".join(iter(cursor.string, None))
        if introducer and not (introducer in _ASCII_SUPERSETS and text.isascii()):
            clauses["computed"] = f"DEFAULT {introducer}"
        else:
            clauses["default"] = Literal(text)
    elif (number := _number(sign, token, cursor)) is not None:
        clauses["default"] = Literal(number, LiteralKind.NUMBER)
    else:
        clauses["computed"] = f"DEFAULT {token.text}"
        if token.keyword == "(":
            _skip_parenthesis(cursor)
        cursor.parenthesized()


def _parse_digits(digits: str, base: int, introducer: str, clauses: dict[str, Any]) -> None:
    value = bytes_literal(digits, base)
    if value is None or introducer:
        clauses["computed"] = f"DEFAULT {introducer}" if introducer else f"DEFAULT of base {base}"
    else:
        clauses["default"] = value


def _skip_parenthesis(cursor: Cursor) -> None:
    """Consume the rest of a parenthesis after its opening."""
    depth = 1
    while depth and (token := cursor.take()) is not None:
        depth += {"(": 1, ")": -1}.get(token.keyword, 0)


def _number(sign: str, token: Token, cursor: Cursor) -> str | None:
    text = sign + token.text
    if token.keyword == ".":
        following = cursor.take()
        text = f"{sign}0.{following.text if following else ''}"
    elif cursor.accept("."):
        text += "." + (cursor.accept_any(cursor.peek()) if cursor.peek()[:1].isdigit() else "")
    if text[-1:] in ("e", "E") and (exponent := cursor.accept_any("+", "-")):
        text += exponent + cursor.accept_any(cursor.peek())
    return text if NUMBER.fullmatch(text) else None
