"""Reads the current structure of a server's tables from information_schema.

For servers whose table maps carry no column names (MySQL 5.7, `binlog_row_metadata=MINIMAL`). Virtual and stored
generated columns are part of row images on MySQL and MariaDB alike (verified on 5.7, 8.0, 10.11), so they are listed.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dmdelta.binlog.values.collation_names import plain_name
from dmdelta.ddl.types.literals import NUMBER
from dmdelta.model.schema import SYSTEM_SCHEMAS, Column, TableName, TableSchema
from dmdelta.model.type_names import CLOCKED, SIZED, TEXTUAL, WITH_DEFAULT
from dmdelta.source.connection import query
from dmdelta.source.server import flavor_of

if TYPE_CHECKING:
    from pymysql.connections import Connection


_TABLES = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_type IN %s AND table_schema NOT IN %s
"""
BASE_TABLE, SEQUENCE, SYSTEM_VERSIONED = "BASE TABLE", "SEQUENCE", "SYSTEM VERSIONED"
"""The types of what has rows in the log; MySQL has only the first, MariaDB all."""
_COLUMNS = """
SELECT table_schema, table_name, column_name, data_type, column_type, character_octet_length,
       numeric_precision, numeric_scale, datetime_precision, character_set_name, is_nullable, extra, collation_name,
       column_default
FROM information_schema.columns
WHERE table_schema IN %s{}
ORDER BY table_schema, table_name, ordinal_position
"""
_KEYS = """
SELECT table_schema, table_name, index_name, column_name, nullable, sub_part
FROM information_schema.statistics
WHERE non_unique = 0 AND table_schema IN %s{}
ORDER BY table_schema, table_name, index_name, seq_in_index
"""

_ONE_TABLE = " AND table_name = %s"

_GEOMETRY = frozenset(
    [
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    ]
)
_FIXED_BINARY = {"inet4": 4, "inet6": 16, "uuid": 16}
"""MariaDB's types that are sent as BINARY(n)."""
_DIMENSIONS = re.compile(r"vector\((\d+)\)")
_DIMENSION_BYTES = 4
_MEMBER = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "0": "\0"}

_Key = tuple[str, str]


def table_names(
    connection: "Connection[Any]", wanted: Callable[[str, str], bool], types: Sequence[str] = (BASE_TABLE,)
) -> set[_Key]:
    """Schema and table of the tables of these types for which `wanted(schema, table)` is true.

    Tables on which the account has no SELECT privilege are not listed.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    # Joined here, not in SQL: MariaDB and MySQL 5.7 have no index on these tables and would join by nested loops.
    return {name for name in query(connection, _TABLES, (types, SYSTEM_SCHEMAS)) if wanted(*name)}


def read_schemas(
    connection: "Connection[Any]", wanted: Callable[[str, str], bool], types: Sequence[str] = (BASE_TABLE,)
) -> list[TableSchema]:
    """The current structures of the tables of these types for which `wanted(schema, table)` is true.

    A table's key is its primary key, else its narrowest unique key without nullable columns, else none. Tables on which
    the account has no SELECT privilege are not listed.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    names = table_names(connection, wanted, types)
    schemas = sorted({schema for schema, _ in names})
    if not schemas:
        return []
    mariadb, columns = _is_mariadb(connection), defaultdict[_Key, list[Column]](list)
    for schema, table, *fields in query(connection, _COLUMNS.format(""), (schemas,)):
        if (schema, table) in names:
            columns[schema, table].append(_column(fields, mariadb=mariadb))
    keys = _keys(query(connection, _KEYS.format(""), (schemas,)))
    return [TableSchema(*name, tuple(listed), *keys.get(name, ((), ""))) for name, listed in columns.items()]


def read_structure(connection: "Connection[Any]", name: TableName) -> TableSchema:
    """The current structure of one table, without a look at the others; without columns if it does not exist. Raises as
    `read_schemas`.
    """
    of_table = ((name[0],), name[1])
    rows = query(connection, _COLUMNS.format(_ONE_TABLE), of_table)
    keys = _keys(query(connection, _KEYS.format(_ONE_TABLE), of_table))
    mariadb = _is_mariadb(connection)
    columns = tuple(_column(fields, mariadb=mariadb) for schema, table, *fields in rows if (schema, table) == name)
    return TableSchema(*name, columns, *keys.get(name, ((), "")))


def _is_mariadb(connection: "Connection[Any]") -> bool:
    return flavor_of(connection.get_server_info()) == "mariadb"  # type: ignore[no-untyped-call]


def _column(fields: Sequence[Any], *, mariadb: bool) -> Column:
    """Converts one row of `_COLUMNS`, starting at the column name."""
    name, data_type, column_type, octets, digits, scale, fsp, charset, nullable, extra, collation, default = fields
    kind = data_type.lower()
    length, precision = 0, 0
    # MySQL 8 names no character set for an ENUM or SET of bytes; MySQL 5.7 and MariaDB name `binary`.
    is_text = kind in TEXTUAL and charset != "binary"
    if kind in _FIXED_BINARY:
        kind, length = "binary", _FIXED_BINARY[kind]
    elif mariadb and (vector := _DIMENSIONS.match(column_type)):
        kind, length = "varbinary", _DIMENSION_BYTES * int(vector[1])
    elif kind in SIZED:
        length = int(octets or 0)
    elif kind == "bit":
        length = int(digits or 1)
    elif kind == "decimal":
        precision = int(digits or 0)
    elif kind in CLOCKED:
        precision = int(fsp or 0)
    return Column(
        name,
        "geometry" if kind in _GEOMETRY else kind,
        unsigned=" unsigned" in column_type,
        length=length,
        precision=precision,
        scale=int(scale or 0) if kind == "decimal" else 0,
        charset={"utf8": "utf8mb3"}.get(charset or "", charset) if is_text else None,
        members=enum_members(column_type) if kind in ("enum", "set") else (),
        nullable=nullable == "YES",
        visible="INVISIBLE" not in extra.upper(),
        collation=plain_name(collation) if collation and is_text else None,
        default=_default(kind, default, extra, mariadb=mariadb) if kind in WITH_DEFAULT else None,
    )


def _default(kind: str, text: str | None, extra: str, *, mariadb: bool) -> str | None:
    """The literal default. MySQL has its text here, and marks an expression since 8.0; MariaDB has SQL."""
    if text is None or "DEFAULT_GENERATED" in extra.upper():
        return None
    if mariadb:
        quoted = _MEMBER.fullmatch(text)
        return _ESCAPE.sub(_unescaped, quoted[1]) if quoted else text if NUMBER.fullmatch(text) else None
    return None if kind in CLOCKED and "CURRENT" in text.upper() else text


def enum_members(column_type: str) -> tuple[str, ...]:
    """The members of `enum('a','b''c')`, unescaped from the form in information_schema."""
    return tuple(_ESCAPE.sub(_unescaped, member) for member in _MEMBER.findall(column_type))


def _unescaped(match: re.Match[str]) -> str:
    char = match.group(1)
    return "'" if char is None else _ESCAPED.get(char, char)


def _keys(rows: list[tuple[Any, ...]]) -> dict[_Key, tuple[tuple[str, ...], str]]:
    """The key of each table that has one, and the name of its unique index; '' for the primary key."""
    indexes: dict[_Key, dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for schema, table, index, *part in rows:
        indexes[schema, table][index].append(tuple(part))
    best = {name: _best_key(candidates) for name, candidates in indexes.items()}
    return {name: key for name, key in best.items() if key is not None}


def _best_key(indexes: dict[str, list[tuple[Any, ...]]]) -> tuple[tuple[str, ...], str] | None:
    if "PRIMARY" in indexes:
        return tuple(column for column, _, _ in indexes["PRIMARY"]), ""
    whole = [
        (len(parts), index, tuple(column for column, _, _ in parts))
        for index, parts in indexes.items()
        # A functional key part has no column name; a prefix does not identify the value.
        if all(column is not None and nullable != "YES" and prefix is None for column, nullable, prefix in parts)
    ]
    _, index, key = min(whole, default=(0, "", ()))
    return (key, index) if key else None
