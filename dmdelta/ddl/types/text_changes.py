"""How text, bytes and enum names change when their column gets another type."""

from dmdelta.ddl.types.outcome import SAME, Conversion, rewrite, stop, within
from dmdelta.ddl.types.silver_types import MAX_DECIMAL_DIGITS, silver_type
from dmdelta.ddl.types.type_words import characters
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal
from dmdelta.model.type_names import BLOBS, BYTES, CHARACTERS, TEXTS

_UNICODE = ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")
"""Character sets with all characters."""
_LATIN1 = "".join(bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(256))
"""MySQL's latin1 is Windows-1252, with Unicode's own characters for undefined codes."""
_LACKING = {
    "utf8mb3": r"[^\\u0000-\\uFFFF]",
    "ucs2": r"[^\\u0000-\\uFFFF]",
    "ascii": r"[^\\u0000-\\u007F]",
    "latin1": "[^" + "".join(f"\\\\u{ord(char):04X}" for char in _LATIN1) + "]",
}
"""The characters that these character sets lack."""
_AS_UTF8 = ("utf8mb4", "utf8mb3", "ascii")
_RANGES = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_WHOLE_NUMBER = r"^\\s*([-+]?[0-9]+)"
_NUMBER = r"^\\s*([-+]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][-+]?[0-9]+)?)"

SHORTER = "servers truncate text or bytes that exceed a smaller TEXT or BLOB at an arbitrary position"
NAMES = "servers match text to names by the column's collation"
MARIADB_BINARY = "BINARY(16) and BINARY(4) may be MariaDB's UUID and INET, whose text is not their bytes"


def text_change(old: Column, new: Column, *, mariadb: bool) -> Conversion:
    """How text in `old`, a column of one of CHARACTERS, changes."""
    if new.type in CHARACTERS:
        return _text_to_text(old, new)
    if new.type in BYTES:
        return _text_to_bytes(old, new)
    if new.type in _RANGES:
        top = 1 << _RANGES[new.type]
        low, high = (0, top - 1) if new.unsigned else (-top // 2, top // 2 - 1)
        # MySQL rounds a fraction, MariaDB reads only the leading digits.
        number = _number("DECIMAL(38,0)", _WHOLE_NUMBER if mariadb else _NUMBER)
        return rewrite(within(number, str(low), str(high), silver_type(new)))
    if new.type == "decimal" and new.precision <= MAX_DECIMAL_DIGITS:
        return rewrite(_number(silver_type(new)))
    if new.type in ("float", "double"):
        return rewrite(f"CAST({_number('DOUBLE')} AS {silver_type(new)})")
    if new.type in ("enum", "set"):
        return stop(NAMES)
    return stop(f"servers parse {new.type.upper()} from text in many formats")


def _number(kind: str, pattern: str = _NUMBER) -> str:
    """SQL: the number at the start of a text; 0 if there is none and the session is not strict."""
    number = f"try_cast(regexp_extract({{column}}, '{pattern}', 1) AS {kind})"
    return f"IF({{column}} IS NULL, NULL, coalesce({number}, CAST(0 AS {kind})))"


def _text_to_text(old: Column, new: Column) -> Conversion:
    if old.type in TEXTS and new.type in TEXTS and TEXTS.index(old.type) > TEXTS.index(new.type):
        return stop(SHORTER)
    value = "{column}"
    known = old.charset is not None and new.charset is not None and old.charset != new.charset
    if known and new.charset not in (*_UNICODE, *(("utf8mb3",) if old.charset == "ucs2" else ())):
        if new.charset not in _LACKING:
            return stop(f"the characters that {new.charset} lacks are unknown")
        value = f"regexp_replace({{column}}, '{_LACKING[new.charset]}', '?')"
    shorter = new.type in ("char", "varchar") and (
        old.type in TEXTS or _length(old) > _length(new) or new.type == "char" != old.type
    )
    value = cut(value, new) if shorter else value
    return SAME if value == "{column}" else rewrite(value)


def _length(column: Column) -> int:
    """Length of a CHAR or VARCHAR in characters; without a character set the length already counts them."""
    known = characters(column)
    return column.length if known is None else known


def cut(value: str, new: Column) -> str:
    """SQL: text truncated to a column's length, for a CHAR without trailing spaces."""
    if new.type in ("char", "varchar"):
        value = f"left({value}, {_length(new)})"
    return f"rtrim({value})" if new.type == "char" else value


def _text_to_bytes(old: Column, new: Column) -> Conversion:
    if old.charset not in _AS_UTF8:
        return stop(f"the bytes of text in {old.charset or 'an unknown character set'} are unknown")
    if new.type == "binary" and new.length in (4, 16):
        return stop(MARIADB_BINARY)
    if new.type in BLOBS and old.type in TEXTS and TEXTS.index(old.type) > BLOBS.index(new.type):
        return stop(SHORTER)
    return rewrite(_fitted("encode({column}, 'UTF-8')", new))


def _fitted(value: str, new: Column) -> str:
    """SQL: bytes truncated to a column's length, for a BINARY padded with zeros."""
    if new.type == "binary":
        return f"rpad({value}, {new.length}, X'00')"
    return f"substring({value}, 1, {new.length})" if new.type == "varbinary" else value


def bytes_change(old: Column, new: Column) -> Conversion:
    """How bytes in `old`, a column of one of BYTES, change."""
    if new.type in BYTES:
        if old.type in BLOBS and new.type in BLOBS:
            return SAME if BLOBS.index(old.type) <= BLOBS.index(new.type) else stop(SHORTER)
        fits = old.type not in BLOBS and old.length <= new.length and new.type == "varbinary"
        same = fits or new.type in BLOBS or (old.type, old.length) == (new.type, new.length)
        return SAME if same else rewrite(_fitted("{column}", new))
    if new.type not in CHARACTERS:
        return stop(f"the server's conversion of bytes to {new.type.upper()} is not supported")
    if old.type == "binary" and old.length in (4, 16):
        return stop(MARIADB_BINARY)
    if new.charset not in _AS_UTF8:
        return stop(f"the meaning of bytes in {new.charset or 'an unknown character set'} is unknown")
    if old.type in BLOBS and new.type in TEXTS and BLOBS.index(old.type) > TEXTS.index(new.type):
        return stop(SHORTER)
    return rewrite(cut("CAST({column} AS STRING)", new))


def enum_change(old: Column, new: Column) -> Conversion:
    """How the names in an ENUM change."""
    if not old.members or (new.type in ("enum", "set") and not new.members):
        return stop("the names of the ENUM are unknown")
    if new.type in ("enum", "set"):
        return _names_to_names(old, new)
    if new.type in _RANGES:
        return rewrite(f"CAST(array_position({_array(old.members)}, {{column}}) AS {silver_type(new)})")
    if new.type in CHARACTERS:
        fits = new.type in TEXTS or max(map(len, old.members)) <= _length(new)
        return SAME if fits else rewrite(cut("{column}", new))
    return stop(f"the server's conversion of enum names to {new.type.upper()} is not supported")


def _names_to_names(old: Column, new: Column) -> Conversion:
    """Servers match by name, regardless of position; names that differ only in case are the same."""
    written = {name.lower(): name for name in reversed(new.members)}
    became = {name: name if name in new.members else written.get(name.lower(), "") for name in old.members}
    if all(name == other for name, other in became.items()):
        return SAME
    pairs = " ".join(f"WHEN {literal(name)} THEN {literal(other)}" for name, other in became.items())
    return rewrite(f"CASE {{column}} {pairs} ELSE {{column}} END")


def set_change(old: Column, new: Column) -> Conversion:
    """How the names in a SET change."""
    if new.type in TEXTS:
        return SAME
    if new.type in CHARACTERS:
        return rewrite(cut("{column}", new))
    if new.type != "set" or not new.members or not old.members:
        return stop(f"the server's conversion of SET names to {new.type.upper()} is not supported")
    if new.members[: len(old.members)] == old.members:
        return SAME
    if not all(name in new.members or name.lower() not in map(str.lower, new.members) for name in old.members):
        return stop("a name of the SET changes its case")
    chosen = f"filter({_array(new.members)}, name -> array_contains(split({{column}}, ','), name))"
    return rewrite(f"IF({{column}} IS NULL, NULL, array_join({chosen}, ','))")


def _array(names: tuple[str, ...]) -> str:
    return f"array({', '.join(literal(name) for name in names)})"
