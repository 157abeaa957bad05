"""What MODIFY and CHANGE do to a column, by DM's names.

Source: pingcap/tiflow, dm/syncer/ddl.go, `needChangeColumnData` and `handleModifyColumn`. Differs where DM is blind: a
CHAR that becomes shorter is a `value range decrease` here, an `alter table` there.
"""

from dataclasses import dataclass
from itertools import pairwise

from dmdelta.ddl.tokens import Cursor
from dmdelta.model.schema import Column, TableSchema

_SYNONYMS = {
    word: kind
    for kind, words in {
        "tinyint": ("INT1", "BOOL", "BOOLEAN"),
        "smallint": ("INT2",),
        "mediumint": ("INT3", "MIDDLEINT"),
        "int": ("INTEGER", "INT4"),
        "bigint": ("INT8", "SERIAL"),
        "decimal": ("DEC", "NUMERIC", "FIXED"),
        "float": ("FLOAT4",),
        "double": ("REAL", "FLOAT8"),
        "char": ("CHARACTER", "NCHAR"),
        "varchar": ("NVARCHAR", "VARCHARACTER"),
    }.items()
    for word in words
}
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
_SIZED = ("char", "varchar", "binary", "varbinary")
_BYTES = {"utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4, "utf8": 3, "utf8mb3": 3, "ujis": 3}
_BYTES |= {"eucjpms": 3, "ucs2": 2, "gbk": 2, "gb2312": 2, "big5": 2, "sjis": 2, "cp932": 2, "euckr": 2}
_DECIMAL_DIGITS = 10


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A column as MODIFY wants it; `length` counts characters, `placed` is FIRST or AFTER."""

    name: str
    type: str
    numbers: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    unsigned: bool = False
    charset: str | None = None
    collates: bool = False
    placed: bool = False


def modify_event(cursor: Cursor, before: TableSchema | None, *, renames: bool) -> str:
    """The event of what stands behind MODIFY, or (`renames`) CHANGE."""
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    old_name = cursor.identifier() if renames else None
    wanted = _read(cursor)
    if wanted is None or before is None:
        return "modify column"
    name = (old_name or wanted.name).lower()
    old = next((column for column in before.columns if column.name.lower() == name), None)
    if old is None:
        return "modify column"
    if found := _data_event(old, wanted):
        return found
    if wanted.charset is not None and _charset(wanted.charset) != old.charset:
        return "modify charset"
    if wanted.collates:
        return "modify collation"
    if wanted.placed:
        return "modify columns order"
    return "rename column" if old.name.lower() != wanted.name.lower() else "alter table"


def _read(cursor: Cursor) -> _Wanted | None:
    name = cursor.identifier()
    if name is None:
        return None
    cursor.accept("NATIONAL")
    word = cursor.peek()
    cursor.take()
    cursor.accept("VARYING")
    cursor.accept("PRECISION")
    arguments = [token.text for token in cursor.parenthesized() or [] if token.text != ","]
    words = [token.keyword or token.text for token in cursor.rest()]
    sets = [after for word, after in pairwise(words) if word in ("SET", "CHARSET")]
    return _Wanted(
        name,
        _SYNONYMS.get(word, word.lower()),
        tuple(int(text) for text in arguments if text.isdigit()),
        tuple(arguments),
        unsigned="UNSIGNED" in words or "ZEROFILL" in words or word == "SERIAL",
        charset=sets[0] if sets else None,
        collates="COLLATE" in words,
        placed="FIRST" in words or "AFTER" in words,
    )


def _charset(word: str) -> str:
    return {"utf8": "utf8mb3"}.get(word.lower(), word.lower())


def _data_event(old: Column, wanted: _Wanted) -> str:
    """The event of a change that values feel; '' for none."""
    if old.type == wanted.type:
        return _same_type_event(old, wanted)
    if old.type in _INTEGERS and wanted.type in _INTEGERS:
        narrower = _INTEGERS.index(wanted.type) < _INTEGERS.index(old.type)
        return "value range decrease" if narrower or old.unsigned != wanted.unsigned else ""
    strings = (*_SIZED, *_TEXTS, *_BLOBS)
    if old.type in strings and wanted.type in strings and {old.type, wanted.type} != {"char", "varchar"}:
        return "modify column" if _most(wanted, old) < _most_of(old) else ""
    return "modify column"


def _same_type_event(old: Column, wanted: _Wanted) -> str:
    first = wanted.numbers[0] if wanted.numbers else 0
    if old.type == "decimal":
        scale = wanted.numbers[1] if len(wanted.numbers) > 1 else 0
        same = (old.precision, old.scale, old.unsigned) == (first or _DECIMAL_DIGITS, scale, wanted.unsigned)
        return "" if same else "precision decrease"
    if old.type in ("enum", "set"):
        return "" if wanted.members[: len(old.members)] == old.members else "value range decrease"
    if old.type in _INTEGERS:
        return "" if old.unsigned == wanted.unsigned else "precision decrease"
    if old.type == "binary":
        return "" if old.length == (first or 1) else "precision decrease"
    if old.type in _SIZED:
        return "value range decrease" if _most(wanted, old) < _most_of(old) else ""
    if old.type == "bit":
        return "value range decrease" if (first or 1) < old.length else ""
    if old.type in ("time", "datetime", "timestamp"):
        return "value range decrease" if first < old.precision else ""
    return "value range decrease" if old.unsigned != wanted.unsigned else ""


def _most(wanted: _Wanted, old: Column) -> int:
    """The most bytes that the new column holds."""
    binary = wanted.type in (*_BLOBS, "binary", "varbinary")
    width = 1 if binary else _BYTES.get(_charset(wanted.charset or old.charset or ""), 1)
    return _size(wanted.type, (wanted.numbers[0] if wanted.numbers else 1) * width)


def _most_of(old: Column) -> int:
    return _size(old.type, old.length)


def _size(kind: str, length: int) -> int:
    for names in (_TEXTS, _BLOBS):
        if kind in names:
            return int(1 << 8 * (names.index(kind) + 1)) - 1
    return length
