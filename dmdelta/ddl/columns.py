"""Column definitions in DDL text: the column, its place, and what the rows that are there get in it."""

import re
from dataclasses import dataclass, replace
from typing import Any

from dmdelta.ddl.tokens import Cursor, Kind, Token
from dmdelta.ddl.types import silver_type
from dmdelta.model.schema import Column

_TYPES = {
    **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), "tinyint"),
    **dict.fromkeys(("SMALLINT", "INT2"), "smallint"),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), "mediumint"),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), "int"),
    **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), "bigint"),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED"), "decimal"),
    **dict.fromkeys(("FLOAT", "FLOAT4"), "float"),
    **dict.fromkeys(("DOUBLE", "REAL", "FLOAT8"), "double"),
    **dict.fromkeys(("CHAR", "CHARACTER", "NCHAR"), "char"),
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "VARCHARACTER", "VARCHAR2"), "varchar"),
    **dict.fromkeys(("GEOMETRY", "POINT", "LINESTRING", "POLYGON"), "geometry"),
    **dict.fromkeys(
        ("MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMCOLLECTION"), "geometry"
    ),
}
_NUMERIC = ("bit", "year")
_TEMPORAL = ("date", "time", "datetime", "timestamp")
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_OTHERS = ("binary", "varbinary", "enum", "set", "json", "vector")
_TYPES.update({name.upper(): name for name in (*_NUMERIC, *_TEMPORAL, *_BLOBS, *_TEXTS, *_OTHERS)})

_BYTES = {"utf8mb4": 4, "utf8mb3": 3, "utf8": 3, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4}
_BYTES.update(dict.fromkeys(("gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2))
_BYTES.update(dict.fromkeys(("ujis", "eucjpms"), 3))
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_ZERO_DATE = re.compile(r"0000-00-00( 00:00:00(\.0+)?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_TIME = re.compile(r"-?\d{2,3}:\d\d:\d\d")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
_DECIMAL_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Fill:
    """What an added column holds in the rows that were there: an SQL expression, or why nobody can tell."""

    sql: str | None = None
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column to add and what to fill it with; `fill.sql` None means NULL."""

    column: Column
    fill: Fill

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True, slots=True)
class Definition:
    """A column definition.

    Attributes:
        column: None if its type's name is not known.
        follows: the column it comes after, '' for FIRST, None for no clause.
        default: the literal behind DEFAULT, None for none.
        computed: the clause that makes values nobody can tell from the statement, '' for none.
        problem: why the definition cannot be followed at all, '' for nothing.
    """

    name: str
    column: Column | None
    follows: str | None = None
    default: str | None = None
    null_default: bool = False
    computed: str = ""
    nullable: bool = True
    problem: str = ""

    def fill(self, column: Column) -> Fill:
        """What the rows that are there get, the column's type being known."""
        if self.computed:
            return Fill(unknown=f"{self.computed} gives the rows that are there values that the log does not tell")
        if self.default is not None:
            return _literal_fill(column, self.default)
        return Fill() if self.nullable or self.null_default else _implicit_fill(column)


def parse_definition(cursor: Cursor) -> Definition | None:
    """Read `name type clauses [FIRST | AFTER c]` to the cursor's end; None if there is no name."""
    name = cursor.identifier()
    if name is None:
        return None
    column = _parse_type(cursor, name)
    clauses: dict[str, Any] = {}
    while not cursor.ended:
        _parse_clause(cursor, clauses)
    definition = replace(Definition(name, column), **clauses)
    if column is not None:
        definition = replace(definition, column=replace(column, nullable=definition.nullable))
    return definition


def _parse_clause(cursor: Cursor, clauses: dict[str, Any]) -> None:
    if cursor.accept("NOT", "NULL"):
        clauses["nullable"] = False
    elif cursor.accept("DEFAULT"):
        _parse_default(cursor, clauses)
    elif cursor.accept("ON", "UPDATE"):
        cursor.take()
        cursor.parenthesized()
    elif cursor.accept("COMMENT"):
        cursor.take()
    elif cursor.accept("FIRST"):
        clauses["follows"] = ""
    elif cursor.accept("AFTER"):
        clauses["follows"] = cursor.identifier()
    elif word := cursor.accept_any("AUTO_INCREMENT", "GENERATED", "AS", "SERIAL"):
        clauses["computed"] = word
    elif cursor.accept("UNIQUE"):
        cursor.accept("KEY")
    elif cursor.accept_any("PRIMARY", "KEY"):
        clauses["problem"] = "the key changes"
    elif cursor.accept("WITH", "SYSTEM") or cursor.accept("WITHOUT", "SYSTEM"):
        cursor.accept("VERSIONING")
    else:
        cursor.take()


def _parse_default(cursor: Cursor, clauses: dict[str, Any]) -> None:
    sign = cursor.accept_any("+", "-")
    token = cursor.take()
    if token is None:
        return
    if token.keyword == "NULL":
        clauses["null_default"] = True
    elif token.keyword in ("TRUE", "FALSE"):
        clauses["default"] = "1" if token.keyword == "TRUE" else "0"
    elif token.keyword in ("B", "X") and (digits := cursor.take()) is not None:
        clauses["default"] = str(int(digits.text, 2 if token.keyword == "B" else 16))
    elif token.kind is Kind.STRING:
        clauses["default"] = token.text
    elif (number := _number(sign, token, cursor)) is not None:
        clauses["default"] = number
    else:
        clauses["computed"] = f"DEFAULT {token.text}"
        if token.keyword == "(":
            while not cursor.ended and not cursor.accept(")"):
                cursor.take()
        cursor.parenthesized()


def _number(sign: str, token: Token, cursor: Cursor) -> str | None:
    text = sign + token.text
    if token.keyword == ".":
        following = cursor.take()
        text = f"{sign}0.{following.text if following else ''}"
    elif cursor.accept("."):
        text += "." + (cursor.accept_any(cursor.peek()) if cursor.peek()[:1].isdigit() else "")
    if text[-1:] in ("e", "E") and (exponent := cursor.accept_any("+", "-")):
        text += exponent + cursor.accept_any(cursor.peek())
    return text if _NUMBER.fullmatch(text) else None


def _parse_type(cursor: Cursor, name: str) -> Column | None:
    cursor.accept("NATIONAL")
    long = cursor.accept("LONG")
    word = cursor.peek()
    kind = _TYPES.get(word)
    if kind is not None:
        cursor.take()
    elif not long:
        return None
    if long:
        kind = "mediumblob" if kind == "varbinary" else "mediumtext"
    assert kind is not None
    cursor.accept("VARYING")
    cursor.accept("PRECISION")
    arguments = [token.text for token in cursor.parenthesized() or [] if token.text != ","]
    numbers = [int(text) for text in arguments if text.isdigit()]
    unsigned = False
    while clause := cursor.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned = unsigned or clause != "SIGNED"
    return _column(name, kind, (word == "SERIAL") or unsigned, numbers, arguments)


def _column(name: str, kind: str, unsigned: bool, numbers: list[int], arguments: list[str]) -> Column:  # noqa: FBT001
    first = numbers[0] if numbers else 0
    if kind == "decimal":
        scale = numbers[1] if len(numbers) > 1 else 0
        return Column(name, kind, unsigned=unsigned, precision=first or _DECIMAL_DIGITS, scale=scale)
    if kind == "float" and len(numbers) == 1 and first > 24:
        return Column(name, "double", unsigned=unsigned)
    if kind == "bit":
        return Column(name, kind, length=first or 1)
    if kind in ("time", "datetime", "timestamp"):
        return Column(name, kind, precision=first)
    if kind in ("enum", "set"):
        return Column(name, kind, members=tuple(arguments))
    if kind in ("char", "varchar", "binary", "varbinary"):
        return Column(name, kind, length=first or 1)
    return Column(name, kind, unsigned=unsigned)


def _literal_fill(column: Column, text: str) -> Fill:
    """The SQL of a default that is a literal."""
    kind, unknown = column.type, Fill(unknown=f"the default of {column.name} is not one that silver can fill in")
    if kind in ("date", "datetime", "timestamp") and _ZERO_DATE.fullmatch(text):
        return Fill()
    if kind in ("varchar", "enum", "set") or kind.endswith("text"):
        return Fill(_string(text))
    if kind == "char":
        return Fill(_string(text.rstrip(" ")))
    if kind in ("bit", "year", *_INTEGERS):
        return Fill(_cast(text, column)) if re.fullmatch(r"[-+]?\d+", text) else unknown
    if kind in ("decimal", "float", "double"):
        fits = _NUMBER.fullmatch(text) and silver_type(column) != "STRING"
        return Fill(_cast(text, column)) if fits else unknown
    if kind == "date" and _DATE.fullmatch(text):
        return Fill(_cast(text, column))
    if kind == "datetime" and _DATETIME.fullmatch(text):
        return Fill(_cast(text, column)) if len(text.partition(".")[2]) <= column.precision else unknown
    if kind == "time" and _TIME.fullmatch(text):
        return Fill(_string(text + ("." + "0" * column.precision if column.precision else "")))
    return unknown


def _implicit_fill(column: Column) -> Fill:
    """The SQL of MySQL's implicit default for NOT NULL columns."""
    kind = column.type
    if kind in ("bit", "year", "decimal", "float", "double", *_INTEGERS):
        text = "0" if not column.scale or silver_type(column) != "STRING" else "0." + "0" * column.scale
        return Fill(_cast(text, column))
    if kind == "enum":
        return Fill(_string(column.members[0])) if column.members else Fill(unknown="the enum's members are not known")
    if kind in ("char", "varchar", "set", *_TEXTS):
        return Fill("''")
    if kind == "time":
        return Fill(_string("00:00:00" + ("." + "0" * column.precision if column.precision else "")))
    if kind in ("date", "datetime"):
        return Fill()
    if kind == "binary":
        return Fill(f"X'{'00' * column.length}'")
    if kind in ("varbinary", *_BLOBS):
        return Fill("X''")
    return Fill(unknown=f"the implicit default of the {kind} column {column.name} is not known")


def same_values(old: Column, new: Column) -> bool:
    """Changing `old` to `new` leaves every value as it is."""
    if (old.type, old.unsigned, old.scale, old.precision) != (new.type, new.unsigned, new.scale, new.precision):
        return False
    if new.members[: len(old.members)] != old.members or (old.nullable and not new.nullable):
        return False
    if old.type in ("bit", "binary"):
        return old.length == new.length
    # A statement tells characters and no charset, the log tells bytes.
    length = new.length if new.charset or not old.charset else new.length * _BYTES.get(old.charset, 1)
    return old.length <= length and new.charset in (None, old.charset)


def _string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _cast(text: str, column: Column) -> str:
    return f"CAST({_string(text)} AS {silver_type(column)})"
