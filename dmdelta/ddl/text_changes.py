"""What becomes of text, bytes and names when their column gets another type."""

from dmdelta.ddl.outcome import SAME, Conversion, rewrite, stop, within
from dmdelta.ddl.type_words import characters
from dmdelta.ddl.types import MAX_DECIMAL_DIGITS, silver_type
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BLOBS, BYTES, CHARACTERS, TEXTS

_UNICODE = ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")
"""Character sets that have every character."""
_LATIN1 = "".join(bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(256))
"""MySQL's latin1 is Windows' 1252, with Unicode's own characters where that has none."""
_LACKING = {
    "utf8mb3": r"[^\\u0000-\\uFFFF]",
    "ucs2": r"[^\\u0000-\\uFFFF]",
    "ascii": r"[^\\u0000-\\u007F]",
    "latin1": "[^" + "".join(f"\\\\u{ord(char):04X}" for char in _LATIN1) + "]",
}
"""What these character sets do not have."""
_AS_UTF8 = ("utf8mb4", "utf8mb3", "ascii")
_RANGES = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_WHOLE_NUMBER = r"^\\s*([-+]?[0-9]+)"
_NUMBER = r"^\\s*([-+]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][-+]?[0-9]+)?)"

SHORTER = "servers cut text or bytes that are too long for a smaller TEXT or BLOB in the middle"
NAMES = "servers find the name that text means by the column's collation"
MARIADB_BINARY = "BINARY(16) and BINARY(4) may be MariaDB's UUID and INET, whose text is not their bytes"


def text_change(old: Column, new: Column, *, mariadb: bool) -> Conversion:
    """What becomes of text in `old`, a column of one of CHARACTERS."""
    if new.type in CHARACTERS:
        return _text_to_text(old, new)
    if new.type in BYTES:
        return _text_to_bytes(old, new)
    if new.type in _RANGES:
        top = 1 << _RANGES[new.type]
        low, high = (0, top - 1) if new.unsigned else (-top // 2, top // 2 - 1)
        # MySQL rounds what it finds, MariaDB reads digits and no more.
        number = _number("DECIMAL(38,0)", _WHOLE_NUMBER if mariadb else _NUMBER)
        return rewrite(within(number, str(low), str(high), silver_type(new)))
    if new.type == "decimal" and new.precision <= MAX_DECIMAL_DIGITS:
        return rewrite(_number(silver_type(new)))
    if new.type in ("float", "double"):
        return rewrite(f"CAST({_number('DOUBLE')} AS {silver_type(new)})")
    if new.type in ("enum", "set"):
        return stop(NAMES)
    return stop(f"servers read a {new.type.upper()} from text in many forms")


def _number(kind: str, pattern: str = _NUMBER) -> str:
    """SQL: the number that text begins with; what begins with none is 0 where the session is not strict."""
    found = f"try_cast(regexp_extract({{column}}, '{pattern}', 1) AS {kind})"
    return f"IF({{column}} IS NULL, NULL, coalesce({found}, CAST(0 AS {kind})))"


def _text_to_text(old: Column, new: Column) -> Conversion:
    if old.type in TEXTS and new.type in TEXTS and TEXTS.index(old.type) > TEXTS.index(new.type):
        return stop(SHORTER)
    value = "{column}"
    known = old.charset is not None and new.charset is not None and old.charset != new.charset
    if known and new.charset not in (*_UNICODE, *(("utf8mb3",) if old.charset == "ucs2" else ())):
        if new.charset not in _LACKING:
            return stop(f"nobody here knows which characters {new.charset} lacks")
        value = f"regexp_replace({{column}}, '{_LACKING[new.charset]}', '?')"
    shorter = new.type in ("char", "varchar") and (
        old.type in TEXTS or _length(old) > _length(new) or new.type == "char" != old.type
    )
    value = cut(value, new) if shorter else value
    return SAME if value == "{column}" else rewrite(value)


def _length(column: Column) -> int:
    """How many characters a CHAR or VARCHAR holds; without a character set the length counts them."""
    known = characters(column)
    return column.length if known is None else known


def cut(value: str, new: Column) -> str:
    """SQL: text as a column of characters takes it: not more than it holds, a CHAR without spaces at its end."""
    if new.type in ("char", "varchar"):
        value = f"left({value}, {_length(new)})"
    return f"rtrim({value})" if new.type == "char" else value


def _text_to_bytes(old: Column, new: Column) -> Conversion:
    if old.charset not in _AS_UTF8:
        return stop(f"the bytes of text in {old.charset or 'a character set that is not told'} are not known")
    if new.type == "binary" and new.length in (4, 16):
        return stop(MARIADB_BINARY)
    if new.type in BLOBS and old.type in TEXTS and TEXTS.index(old.type) > BLOBS.index(new.type):
        return stop(SHORTER)
    return rewrite(_fitted("encode({column}, 'UTF-8')", new))


def _fitted(value: str, new: Column) -> str:
    """SQL: bytes as a column takes them: not more than it holds, a BINARY filled up with zeros."""
    if new.type == "binary":
        return f"rpad({value}, {new.length}, X'00')"
    return f"substring({value}, 1, {new.length})" if new.type == "varbinary" else value


def bytes_change(old: Column, new: Column) -> Conversion:
    """What becomes of bytes in `old`, a column of one of BYTES."""
    if new.type in BYTES:
        if old.type in BLOBS and new.type in BLOBS:
            return SAME if BLOBS.index(old.type) <= BLOBS.index(new.type) else stop(SHORTER)
        fits = old.type not in BLOBS and old.length <= new.length and new.type == "varbinary"
        same = fits or new.type in BLOBS or (old.type, old.length) == (new.type, new.length)
        return SAME if same else rewrite(_fitted("{column}", new))
    if new.type not in CHARACTERS:
        return stop(f"a {new.type.upper()} takes bytes in a way of its own")
    if old.type == "binary" and old.length in (4, 16):
        return stop(MARIADB_BINARY)
    if new.charset not in _AS_UTF8:
        return stop(f"what bytes mean in {new.charset or 'a character set that is not told'} is not known")
    if old.type in BLOBS and new.type in TEXTS and BLOBS.index(old.type) > TEXTS.index(new.type):
        return stop(SHORTER)
    return rewrite(cut("CAST({column} AS STRING)", new))


def enum_change(old: Column, new: Column) -> Conversion:
    """What becomes of the names in an ENUM."""
    if not old.members or (new.type in ("enum", "set") and not new.members):
        return stop("the names of the ENUM are not known")
    if new.type in ("enum", "set"):
        return _names_to_names(old, new)
    if new.type in _RANGES:
        return rewrite(f"CAST(array_position({_array(old.members)}, {{column}}) AS {silver_type(new)})")
    if new.type in CHARACTERS:
        fits = new.type in TEXTS or max(map(len, old.members)) <= _length(new)
        return SAME if fits else rewrite(cut("{column}", new))
    return stop(f"a {new.type.upper()} takes names in a way of its own")


def _names_to_names(old: Column, new: Column) -> Conversion:
    """Servers go by the name, whatever its place; a name that is written otherwise is the same name."""
    written = {name.lower(): name for name in reversed(new.members)}
    became = {name: name if name in new.members else written.get(name.lower(), "") for name in old.members}
    if all(name == other for name, other in became.items()):
        return SAME
    pairs = " ".join(f"WHEN {literal(name)} THEN {literal(other)}" for name, other in became.items())
    return rewrite(f"CASE {{column}} {pairs} ELSE {{column}} END")


def set_change(old: Column, new: Column) -> Conversion:
    """What becomes of the names in a SET."""
    if new.type in TEXTS:
        return SAME
    if new.type in CHARACTERS:
        return rewrite(cut("{column}", new))
    if new.type != "set" or not new.members or not old.members:
        return stop(f"a {new.type.upper()} takes the names of a SET in a way of its own")
    if new.members[: len(old.members)] == old.members:
        return SAME
    if not all(name in new.members or name.lower() not in map(str.lower, new.members) for name in old.members):
        return stop("a name of the SET is written otherwise")
    chosen = f"filter({_array(new.members)}, name -> array_contains(split({{column}}, ','), name))"
    return rewrite(f"IF({{column}} IS NULL, NULL, array_join({chosen}, ','))")


def _array(names: tuple[str, ...]) -> str:
    return f"array({', '.join(literal(name) for name in names)})"
