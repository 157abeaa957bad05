"""Table schemas of table maps: from the table map itself, or by finding the known schema that matches.

A table map without column names (MySQL 5.7, row metadata MINIMAL) matches a known schema if every column agrees in
type, length, precision, and, if the table map contains them, signedness and character set.
"""

from collections.abc import Sequence
from dataclasses import replace

from dmdelta.binlog.rows.table_map import TableMap
from dmdelta.binlog.values.charsets import decoder_of
from dmdelta.binlog.values.collation_names import collation_name
from dmdelta.binlog.values.collations import BINARY_COLLATION, charset_of
from dmdelta.binlog.values.column_types import CHARACTER, NUMERIC, WireColumn, WireType
from dmdelta.errors import CorruptBinlog
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.type_names import BLOBS, SIZED, TEXTS, TEXTUAL

_TEMPORAL = frozenset({WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2})
_SIZED = frozenset({*SIZED, "bit"})
_TEXT_LIKE = CHARACTER | {WireType.ENUM, WireType.SET}
_OLD_GEOMETRY = frozenset(
    {"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection"}
)


def describe(table_map: TableMap) -> TableSchema | None:
    """The structure in a table map with column names; None if it has no names."""
    if not table_map.names:
        return None
    columns = tuple(_column(table_map, number) for number in range(len(table_map.columns)))
    key = tuple(table_map.names[number] for number in table_map.primary_key)
    return TableSchema(table_map.schema, table_map.table, columns, key)


def _column(table_map: TableMap, number: int) -> Column:
    wire = table_map.columns[number]
    collation = table_map.collations[number]
    charset = charset_of(collation) if collation else None
    name = wire.type_name(binary=collation == BINARY_COLLATION)
    # Members in the character set `binary` are the bytes of the statement, which clients send as UTF-8.
    members = _members(table_map, number, charset if charset and collation != BINARY_COLLATION else "utf8mb4")
    return Column(
        table_map.names[number],
        name,
        unsigned=bool(table_map.unsigned and table_map.unsigned[number]) and wire.type != WireType.YEAR,
        length=wire.length if name in _SIZED else 0,
        precision=wire.precision,
        scale=wire.scale,
        charset=charset if collation != BINARY_COLLATION else None,
        members=members,
        nullable=table_map.nullable[number],
        visible=table_map.visible is None or table_map.visible[number],
        collation=collation_name(collation) if charset is not None and collation != BINARY_COLLATION else None,
    )


def _members(table_map: TableMap, number: int, charset: str) -> tuple[str, ...]:
    if number not in table_map.members:
        return ()
    try:
        return tuple(map(decoder_of(charset), table_map.members[number]))
    except UnicodeDecodeError as damage:
        raise CorruptBinlog(
            f"{table_map.schema}.{table_map.table}.{table_map.names[number]} has members that are not valid {charset}",
            hint="report this event to the project",
        ) from damage


def find_known(table_map: TableMap, known: Sequence[TableSchema]) -> TableSchema | None:
    """The last of the `known` schemas that matches, None if none does. Callers list older structures first."""
    for schema in reversed(known):
        if len(schema.columns) == len(table_map.columns) and all(
            _fits(table_map, number, column) for number, column in enumerate(schema.columns)
        ):
            return schema
    return None


def fitted(table_map: TableMap, schema: TableSchema) -> TableSchema | None:
    """A structure derived from statements, completed from the table map; None if it does not match."""
    if len(schema.columns) != len(table_map.columns):
        return None
    columns = tuple(_completed(table_map, number, column) for number, column in enumerate(schema.columns))
    fits = all(_fits(table_map, number, column) for number, column in enumerate(columns))
    return replace(schema, columns=columns) if fits else None


def _completed(table_map: TableMap, number: int, column: Column) -> Column:
    """Complete nullability, the size of a TEXT or BLOB, and the collation if the table map contains it."""
    wire, collation = table_map.columns[number], table_map.collations[number]
    column = replace(_as_logged(wire, column), nullable=table_map.nullable[number])
    if column.type in TEXTS and wire.type_name(binary=False) in TEXTS:
        column = replace(column, type=wire.type_name(binary=False))
    elif column.type in BLOBS and wire.type_name(binary=True) in BLOBS:
        column = replace(column, type=wire.type_name(binary=True))
    is_text = column.type in TEXTUAL
    if not is_text or not collation or collation == BINARY_COLLATION:
        return column
    if column.charset is None:
        length = wire.length if column.type in _SIZED else 0
        column = replace(column, charset=charset_of(collation), length=length)
    return replace(column, collation=collation_name(collation) or column.collation)


def _as_logged(wire: WireColumn, column: Column) -> Column:
    """MariaDB's VECTOR has a fixed length in statements, and is a VARBINARY in the log."""
    if column.type == "binary" and wire.type == WireType.VARCHAR:
        return replace(column, type="varbinary")
    return column


def _fits(table_map: TableMap, number: int, column: Column) -> bool:
    wire = table_map.columns[number]
    return _metadata_agrees(table_map, number, column) and _layout_fits(wire, column)


def _metadata_agrees(table_map: TableMap, number: int, column: Column) -> bool:
    wire = table_map.columns[number]
    signed = wire.type in NUMERIC and wire.type != WireType.YEAR
    if signed and table_map.unsigned is not None and table_map.unsigned[number] != column.unsigned:
        return False
    collation = table_map.collations[number]
    if not collation or wire.type not in _TEXT_LIKE:
        return True
    logged = charset_of(collation)
    expected = column.charset or "binary"
    return logged == {"utf8": "utf8mb3"}.get(expected, expected)


def _layout_fits(wire: WireColumn, column: Column) -> bool:
    expected = "geometry" if column.type in _OLD_GEOMETRY else column.type
    binary = column.charset in (None, "binary")
    if wire.type_name(binary=binary) != expected:
        return False
    if expected in _SIZED and wire.type != WireType.VAR_STRING:
        return wire.length == column.length
    if wire.type == WireType.NEWDECIMAL:
        return (wire.precision, wire.scale) == (column.precision, column.scale)
    if wire.type in _TEMPORAL:
        return wire.precision == column.precision
    if wire.type == WireType.ENUM:
        return wire.length == (1 if len(column.members) <= 0xFF else 2)
    if wire.type == WireType.SET:
        return wire.length == _set_size(len(column.members))
    return True


def _set_size(members: int) -> int:
    size = (members + 7) // 8
    return size if size <= 4 else 8
