"""How text, bytes and enum names change when their column gets another type."""

import re

from dmdelta.ddl.types.number_bounds import (
    INTEGER_BITS,
    MAX_DOUBLE,
    MAX_FLOAT,
    decimal_bounds,
    integer_bounds,
    within,
)
from dmdelta.ddl.types.outcome import SAME, Conversion, rewrite, stop
from dmdelta.ddl.types.silver_types import MAX_DECIMAL_DIGITS, silver_type
from dmdelta.ddl.types.type_words import bytes_each, capacity, characters
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
_POSITION = re.compile(r"\s*[-+]?\d+")
_WHOLE_NUMBER = r"^\\s*([-+]?[0-9]+)"
_NUMBER = r"^\\s*([-+]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][-+]?[0-9]+)?)"

SHORTER = "servers truncate text or bytes that exceed a smaller TEXT or BLOB at an arbitrary position"
NAMES = "servers match text to names by the column's collation"
NUMBERED = "servers read a name that is a number, and that the new definition lacks, as the position of another name"
MARIADB_BINARY = "BINARY(16) and BINARY(4) may be MariaDB's UUID and INET, whose text is not their bytes"


def text_change(old: Column, new: Column, *, mariadb: bool) -> Conversion:
    """How text in `old`, a column of one of CHARACTERS, changes."""
    if new.type in CHARACTERS:
        return _text_to_text(old, new)
    if new.type in BYTES:
        return _text_to_bytes(old, new)
    if new.type in INTEGER_BITS:
        low, high = map(str, integer_bounds(new))
        # MySQL rounds a fraction, MariaDB reads only the leading digits.
        number = _number("DECIMAL(38,0)", (low, high), _WHOLE_NUMBER if mariadb else _NUMBER)
        return rewrite(within(number, low, high, silver_type(new)))
    if new.type == "decimal" and new.precision <= MAX_DECIMAL_DIGITS:
        kind = silver_type(new)
        number = _number(kind, decimal_bounds(new))
        return rewrite(f"IF({number} < 0, CAST(0 AS {kind}), {number})" if new.unsigned else number)
    if new.type in ("float", "double"):
        most = MAX_FLOAT if new.type == "float" else MAX_DOUBLE
        least = "0" if new.unsigned else f"-{most}"
        return rewrite(within(_number("DOUBLE", (least, most)), least, most, silver_type(new)))
    if new.type in ("enum", "set"):
        return stop(NAMES)
    return stop(f"servers parse {new.type.upper()} from text in many formats")


def _number(kind: str, bounds: tuple[str, str], pattern: str = _NUMBER) -> str:
    """SQL: the number at the start of a text; 0 if there is none, the nearest bound if the kind cannot hold it: only a
    session that is not strict allows both.
    """
    number = f"regexp_extract({{column}}, '{pattern}', 1)"
    signed = f"try_cast({number} AS DOUBLE)"
    low, high = (f"CAST('{bound}' AS {kind})" for bound in bounds)
    beyond = f"CASE WHEN {signed} < 0 THEN {low} WHEN {signed} > 0 THEN {high} ELSE CAST(0 AS {kind}) END"
    return f"IF({{column}} IS NULL, NULL, coalesce(try_cast({number} AS {kind}), {beyond}))"


def _text_to_text(old: Column, new: Column) -> Conversion:
    if new.type in TEXTS and _most_bytes(old, new.charset) > capacity(new):
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


def _most_bytes(column: Column, charset: str | None) -> int:
    """The most bytes that text takes in a character set; for a TEXT in its own: only its rows show whether it fits."""
    return _length(column) * bytes_each(charset) if column.type in ("char", "varchar") else capacity(column)


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
    if new.type in BLOBS and capacity(old) > capacity(new):
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
        if new.type in BLOBS:
            return SAME if capacity(old) <= capacity(new) else stop(SHORTER)
        fits = old.type not in BLOBS and old.length <= new.length and new.type == "varbinary"
        same = fits or (old.type, old.length) == (new.type, new.length)
        return SAME if same else rewrite(_fitted("{column}", new))
    if new.type not in CHARACTERS:
        return stop(f"the server's conversion of bytes to {new.type.upper()} is not supported")
    if old.type == "binary" and old.length in (4, 16):
        return stop(MARIADB_BINARY)
    if new.charset not in _AS_UTF8:
        return stop(f"the meaning of bytes in {new.charset or 'an unknown character set'} is unknown")
    if new.type in TEXTS and capacity(old) > capacity(new):
        return stop(SHORTER)
    return rewrite(cut("CAST({column} AS STRING)", new))


def enum_change(old: Column, new: Column) -> Conversion:
    """How the names in an ENUM change."""
    if not old.members or (new.type in ("enum", "set") and not new.members):
        return stop("the names of the ENUM are unknown")
    if new.type in ("enum", "set"):
        return _names_to_names(old, new)
    if new.type in INTEGER_BITS:
        return rewrite(f"CAST(array_position({_array(old.members)}, {{column}}) AS {silver_type(new)})")
    if new.type in CHARACTERS:
        if not _has_characters(old, new):
            return stop(f"the characters that {new.charset} lacks are unknown")
        fits = new.type in TEXTS or max(map(len, old.members)) <= _length(new)
        return SAME if fits else rewrite(cut("{column}", new))
    return stop(f"the server's conversion of enum names to {new.type.upper()} is not supported")


def _has_characters(old: Column, new: Column) -> bool:
    """Whether the character set of a new text column has the characters of all names of an ENUM or SET."""
    most = "\x7f" if new.charset not in ("utf8mb3", "ucs2") else "\uffff"
    return new.charset in (None, old.charset, *_UNICODE) or all(char <= most for name in old.members for char in name)


def _unmatched(old: Column, new: Column) -> Conversion | None:
    """Why it is unknown what becomes of the names that the new definition lacks; None: they become no name."""
    missing = [name for name in old.members if name not in new.members]
    folded = {name.lower() for name in new.members}
    plain = all(name.isascii() for name in (*missing, *new.members))
    if missing and (not plain or any(name.lower() in folded for name in missing)):
        return stop(NAMES)
    if any(_POSITION.fullmatch(name) for name in missing):
        return stop(NUMBERED)
    return None


def _names_to_names(old: Column, new: Column) -> Conversion:
    """Servers match by name, regardless of position."""
    if (unknown := _unmatched(old, new)) is not None:
        return unknown
    missing = [name for name in old.members if name not in new.members]
    if not missing:
        return SAME
    return rewrite(f"CASE WHEN {{column}} IN ({', '.join(map(literal, missing))}) THEN '' ELSE {{column}} END")


def set_change(old: Column, new: Column) -> Conversion:
    """How the names in a SET change."""
    if new.type in CHARACTERS:
        if not _has_characters(old, new):
            return stop(f"the characters that {new.charset} lacks are unknown")
        return SAME if new.type in TEXTS else rewrite(cut("{column}", new))
    if new.type != "set" or not new.members or not old.members:
        return stop(f"the server's conversion of SET names to {new.type.upper()} is not supported")
    if new.members[: len(old.members)] == old.members:
        return SAME
    if (unknown := _unmatched(old, new)) is not None:
        return unknown
    chosen = f"filter({_array(new.members)}, name -> array_contains(split({{column}}, ','), name))"
    return rewrite(f"IF({{column}} IS NULL, NULL, array_join({chosen}, ','))")


def _array(names: tuple[str, ...]) -> str:
    return f"array({', '.join(literal(name) for name in names)})"
