"""Type names in DDL text, and the character sets that determine how many bytes a text column takes."""

import re
from dataclasses import replace

from dmdelta.ddl.tokens import Cursor, Kind
from dmdelta.model.schema import Column
from dmdelta.model.type_names import BLOBS, BYTES, CLOCKED, NAMED, SIZED, TEXTS, TEXTUAL

_TYPES = {
    **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), "tinyint"),
    **dict.fromkeys(("SMALLINT", "INT2"), "smallint"),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), "mediumint"),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), "int"),
    **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), "bigint"),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"), "decimal"),
    **dict.fromkeys(("FLOAT", "FLOAT4"), "float"),
    **dict.fromkeys(("DOUBLE", "REAL", "FLOAT8"), "double"),
    **dict.fromkeys(("CHAR", "CHARACTER", "NCHAR"), "char"),
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "VARCHARACTER", "VARCHAR2"), "varchar"),
    **dict.fromkeys(("GEOMETRY", "POINT", "LINESTRING", "POLYGON"), "geometry"),
    **dict.fromkeys(
        ("MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMCOLLECTION"), "geometry"
    ),
    **dict.fromkeys(("INET4", "INET6", "UUID"), "binary"),
}
_OTHERS = ("bit", "year", "date", *CLOCKED, "json", "vector")
_TYPES.update({name.upper(): name for name in (*BYTES, *TEXTS, *NAMED, *_OTHERS)})
_KNOWN = frozenset(_TYPES.values())

_VARCHAR = ("VARCHAR", "VARCHARACTER")
_FIXED_BINARY = {"INET4": 4, "INET6": 16, "UUID": 16}
"""MariaDB's types that are logged as BINARY(n)."""
_DIMENSION_BYTES = 4
_SIZES = (0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF)
_CAPACITY = {name: size for names in (TEXTS, BLOBS) for name, size in zip(names, _SIZES, strict=True)}
_BINARY = {"char": "binary", "varchar": "varbinary", **dict(zip(TEXTS, BLOBS, strict=True))}
_DECIMAL_DIGITS = 10
_MAX_VARCHAR_BYTES = 65535

_SINGLE = (
    "armscii8|ascii|binary|cp1250|cp1251|cp1256|cp1257|cp850|cp852|cp866|dec8|geostd8|greek|hebrew|hp8|keybcs2|koi8r"
    "|koi8u|latin1|latin2|latin5|latin7|macce|macroman|swe7|tis620"
)
_BYTES = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2),
    **dict.fromkeys(_SINGLE.split("|"), 1),
}
"""The character sets and the maximum bytes per character."""


def known_type(column: Column) -> bool:
    """Whether the parser knows the column's type."""
    return column.type in _KNOWN


def is_text(column: Column) -> bool:
    """Whether the column's values are text in a character set."""
    return column.type in TEXTUAL


def charset_named(word: str) -> str | None:
    """The character set denoted by a charset or collation name, None if unknown."""
    name = word.lower()
    name = name if name in _BYTES else name.partition("_")[0]
    name = "utf8mb3" if name == "utf8" else name
    return name if name in _BYTES else None


def capacity(column: Column) -> int:
    """The maximum bytes of a value of a text or byte column."""
    return _CAPACITY.get(column.type, column.length)


def bytes_each(charset: str | None) -> int:
    """The maximum bytes per character; of an unknown character set, the most that any has."""
    return _BYTES.get(charset or "", max(_BYTES.values()))


def characters(column: Column) -> int | None:
    """Length of a CHAR or VARCHAR in characters, None if unknown."""
    return column.length // _BYTES[column.charset] if column.charset in _BYTES else None


def parse_type(cursor: Cursor, name: str, *, mariadb: bool = False) -> tuple[Column, int] | None:
    """Consume a type: the column, and the written length, 0 for none; None if no type comes next.

    Text has no character set yet and its length counts characters: the following clauses may set it. The type of an
    unknown word is the word itself.
    """
    national, word = cursor.accept("NATIONAL"), cursor.peek()
    if not re.fullmatch(r"[A-Z_]\w*", word):
        return None
    cursor.take()
    kind = _kind(cursor, word)
    arguments = cursor.parenthesized() or []
    unsigned = word == "SERIAL"
    while clause := cursor.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned = unsigned or clause != "SIGNED"
    numbers = [int(token.text) for token in arguments if token.kind is Kind.WORD and token.text.isdecimal()]
    members = tuple(token.text.rstrip(" ") for token in arguments if token.kind is Kind.STRING)
    if word in _FIXED_BINARY:
        numbers = [_FIXED_BINARY[word]]
    if kind == "vector" and mariadb:
        # Of a fixed length: the server pads the values when an ALTER makes it longer.
        kind, numbers = "binary", [_DIMENSION_BYTES * number for number in numbers]
    if kind == "json" and mariadb:
        return Column(name, "longtext", charset="utf8mb4"), 0
    column = _column(replace(Column(name, kind), unsigned=unsigned, members=members), numbers)
    if national or word in ("NCHAR", "NVARCHAR"):
        column = in_charset(column, "utf8mb3")
    return column, numbers[0] if numbers else 0


def _kind(cursor: Cursor, word: str) -> str:
    """The type of a word and those after it that belong to its name."""
    if word == "LONG":
        if cursor.accept("VARBINARY"):
            return "mediumblob"
        # CHARACTER without VARYING begins a clause: LONG CHARACTER SET latin1.
        _ = cursor.accept_any(*_VARCHAR) or cursor.accept("CHAR", "VARYING") or cursor.accept("CHARACTER", "VARYING")
        return "mediumtext"
    if cursor.accept("VARYING") or (word == "NCHAR" and cursor.accept_any(*_VARCHAR)):
        return "varchar"
    cursor.accept("PRECISION")
    return _TYPES.get(word, word.lower())


def _column(column: Column, numbers: list[int]) -> Column:
    """The column with the numbers after its type applied."""
    kind, first = column.type, numbers[0] if numbers else 0
    if kind == "decimal":
        return replace(column, precision=first or _DECIMAL_DIGITS, scale=numbers[1] if len(numbers) > 1 else 0)
    if kind == "float" and len(numbers) == 1 and first > 24:
        return replace(column, type="double")
    if kind == "bit":
        return replace(column, length=first or 1)
    if kind in CLOCKED:
        return replace(column, precision=first)
    if kind in SIZED:
        return replace(column, length=first if numbers else 1)
    if kind in ("text", "blob") and first:
        return replace(column, type=_sized(kind, first))
    return column


def in_charset(column: Column, charset: str | None, length: int = 0) -> Column:
    """A column whose length counts characters, converted to a character set; `length` is that written after TEXT, or 0.

    Text in character set `binary` is bytes. Without a character set the length continues to count characters.
    """
    if charset is None or not is_text(column):
        return column
    if charset == "binary" and column.type in _BINARY:
        return replace(column, type=_BINARY[column.type], charset=None)
    if column.type in ("char", "varchar"):
        octets = column.length * _BYTES[charset]
        if column.type == "varchar" and octets > _MAX_VARCHAR_BYTES:
            return replace(column, type=_sized("text", octets), charset=charset, length=0)
        return replace(column, charset=charset, length=octets)
    kind = _sized("text", length * _BYTES[charset]) if column.type in TEXTS and length else column.type
    return replace(column, type=kind, charset=charset)


def converted(column: Column, charset: str | None) -> Column:
    """A column after CONVERT TO CHARACTER SET; None for an unknown one.

    Text types grow until they hold as many characters as before, as do VARCHARs that would not fit a row.
    """
    if not is_text(column) or charset == column.charset:
        return column
    if column.type in TEXTS:
        each = _BYTES.get(column.charset or "", 0)
        held = _SIZES[TEXTS.index(column.type)] // each if each else 0
        return in_charset(replace(column, charset=None), charset, held)
    known = characters(column) if column.type in ("char", "varchar") else None
    return in_charset(replace(column, charset=None, length=column.length if known is None else known), charset)


def _sized(family: str, octets: int) -> str:
    """The smallest TEXT or BLOB type that holds this many bytes."""
    names = TEXTS if family == "text" else BLOBS
    return next((name for name, size in zip(names, _SIZES, strict=True) if octets <= size), names[-1])
