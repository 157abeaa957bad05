"""From the VARIANT of a row image to MySQL literals: Spark SQL expressions, made without Spark.

Every literal is exact, whatever the target's column is: numbers have all their digits, a FLOAT those of the double
that it is, odd dates are the text that MySQL shows, bytes and geometries (SRID and WKB, as MySQL keeps them) are hex.
The session that reads them has backslash escapes, UTC and utf8mb4 (`connection`).
"""

from dmdelta.changelog.extraction import extracted, variant_path
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.place import literal
from dmdelta.model.schema import Column, ConstantColumn
from dmdelta.sink.statements import text

TEXTS = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"))
BYTES = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
NAMELESS = "0/*dmdelta: enum without a name*/"
"""An ENUM's value that strict servers take under protest only: see `worker`."""
_PLAIN = frozenset(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit", "decimal"))
_APPROXIMATE = frozenset(("float", "double"))
_TIMES = frozenset(("date", "time", "datetime", "timestamp"))


def value_literal(image: str, column: Column) -> str:
    """A column's value in the VARIANT `image` as a literal (SQL string), 'NULL' for NULL."""
    return f"coalesce({_literal(image, column)}, 'NULL')"


def tuple_literal(image: str, columns: tuple[Column, ...]) -> str:
    """The values of columns as `(1,'a',NULL)`."""
    values = ", ',', ".join(value_literal(image, column) for column in columns)
    return f"concat('(', {values}, ')')"


def identity_literal(image: str, columns: tuple[Column, ...]) -> str:
    """A key: one literal, or several in parentheses; NULL if a part of it is NULL."""
    parts, between = [_literal(image, column) for column in columns], ", ',', "
    return parts[0] if len(parts) == 1 else f"concat('(', {between.join(parts)}, ')')"


def condition_literal(image: str, columns: tuple[tuple[str, Column], ...]) -> str:
    """A condition that finds a row by all its values; texts by their bytes, whatever their collation says.

    Args:
        columns: with their names in the target, as SQL.
    """
    return f"concat_ws(' AND ', {', '.join(_equals(image, name, column) for name, column in columns)})"


def assignments(image: str, columns: tuple[tuple[str, Column], ...], names: str | None = None) -> str:
    """`a`=1, `b`='x': of all columns, or of those that the array `names` (SQL, NULL for all) holds."""
    parts = []
    for name, column in columns:
        part = f"concat({literal(name + '=')}, {value_literal(image, column)})"
        held = names is not None and not isinstance(column, ConstantColumn)
        told = f"{names} IS NULL OR array_contains({names}, {literal(column.name)})"
        parts.append(f"IF({told}, {part}, NULL)" if held else part)
    return f"concat_ws(', ', {', '.join(parts)})"


def key_text(image: str, column: Column, prefix: int | None) -> str:
    """A key part such that values which a target might take for equal are the same text; NULL for NULL.

    Text is compared as the widest of collations would: without case, controls and trailing blanks, and letters that
    some languages do not tell apart are one. That is enough for ASCII; of other text see `plan`.

    Args:
        prefix: characters or bytes that the index holds, None for all.
    """
    if column.type in TEXTS:
        value = f"left({_raw(image, column)}, {prefix})" if prefix else _raw(image, column)
        bare = f"rtrim(regexp_replace({value}, '[\\\\x00-\\\\x1f\\\\x7f]', ''))"
        return f"translate(upper({bare}), 'VWJY', 'UUII')"
    if column.type in BYTES:
        value = _raw(image, column)
        return f"hex(substr({value}, 1, {prefix}))" if prefix else f"hex({value})"
    if column.type in _APPROXIMATE:
        return f"CAST({_double(image, column)} + 0.0D AS STRING)"
    return _literal(image, column)


def _equals(image: str, name: str, column: Column) -> str:
    value = _literal(image, column)
    missing = literal(f"{name} IS NULL")
    if column.type in TEXTS:
        same = f"{literal(f'{name} = ')}, {value}, {literal(f' AND BINARY CONVERT({name} USING utf8mb4) = BINARY ')}"
        return f"coalesce(concat({same}, {value}), {missing})"
    if column.type == "json":
        return f"coalesce(concat({literal(f'{name} = CAST(')}, {value}, ' AS JSON)'), {missing})"
    return f"coalesce(concat({literal(f'{name} = ')}, {value}), {missing})"


def _literal(image: str, column: Column) -> str:
    """The literal, NULL for NULL."""
    kind = column.type
    if isinstance(column, ConstantColumn):
        return literal(text(column.value))
    if kind in _PLAIN:
        # A decimal of more than 38 digits is text in the image.
        return f"CAST({_raw(image, column)} AS STRING)"
    if kind in _APPROXIMATE:
        digits = f"CAST({_double(image, column)} AS STRING)"
        return f"IF(contains({digits}, 'E'), {digits}, concat({digits}, 'E0'))"
    if kind in _TIMES:
        return f"concat('\\'', {_get(image, column, 'STRING')}, '\\'')"
    if kind == "enum":
        # The value of index 0 has no name; it comes as ''.
        found = _quoted(_raw(image, column))
        return found if "" in column.members else f"IF({_raw(image, column)} = '', '{NAMELESS}', {found})"
    if kind in TEXTS:
        return _quoted(_raw(image, column))
    if kind in BYTES:
        return f"concat('x\\'', hex({_raw(image, column)}), '\\'')"
    if kind == "json":
        return _quoted(f"to_json({_get(image, column, 'VARIANT')})")
    if kind == "geometry":
        return _geometry(image, column)
    if kind == "vector":
        numbers = f"array_join(transform({_raw(image, column)}, x -> CAST(CAST(x AS DOUBLE) AS STRING)), ',')"
        return f"concat('STRING_TO_VECTOR(\\'[', {numbers}, ']\\')')"
    raise SchemaError(f"the type {kind!r} of column {column.name} is not known", hint="report it with the table's DDL")


def _geometry(image: str, column: Column) -> str:
    srid = f"lpad(hex({_raw(image, column)}.srid), 8, '0')"
    little = ", ".join(f"substr({srid}, {at}, 2)" for at in (7, 5, 3, 1))
    return f"concat('x\\'', {little}, hex({_raw(image, column)}.wkb), '\\'')"


def _quoted(value: str) -> str:
    r"""A string as a MySQL literal: \ and ' doubled, NUL as \0."""
    escaped = f"replace(replace(replace({value}, '\\\\', '\\\\\\\\'), '\\'', '\\'\\''), '\\0', '\\\\0')"
    return f"concat('\\'', {escaped}, '\\'')"


def _double(image: str, column: Column) -> str:
    return f"CAST({_raw(image, column)} AS DOUBLE)"


def _raw(image: str, column: Column) -> str:
    return extracted(image, column)


def _get(image: str, column: Column, kind: str) -> str:
    """The value read as `kind`, whatever the image holds."""
    path = variant_path(column.name)
    if path is not None:
        return f"variant_get({image}, {literal(path)}, '{kind}')"
    return f"variant_get(CAST({image} AS MAP<STRING, VARIANT>)[{literal(column.name)}], '$', '{kind}')"
