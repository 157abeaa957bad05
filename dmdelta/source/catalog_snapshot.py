"""Reads information_schema as of a log position, for servers whose log has no column names."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.ddl.types.type_words import charset_named
from dmdelta.errors import SourceError
from dmdelta.model.schema import SYSTEM_SCHEMAS, TableName, TableSchema
from dmdelta.source.catalog import BASE_TABLE, SEQUENCE, read_schemas
from dmdelta.source.connection import open_connection, query
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import server_identity, server_position

if TYPE_CHECKING:
    from pymysql.connections import Connection

SETTLE_SECONDS = 0.5
"""How long a statement may be visible before it is in the log, or the other way round."""
STILL_TRIES = 10
_TABLES = """
SELECT table_schema, table_name, table_collation FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN %s
"""
_DATABASES = (
    "SELECT schema_name, default_character_set_name FROM information_schema.schemata WHERE schema_name NOT IN %s"
)
_KEYED = """
SELECT DISTINCT table_schema, table_name FROM information_schema.statistics
WHERE index_name = 'PRIMARY' AND table_schema NOT IN %s
"""


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """The structures of tables as of a log position.

    Attributes:
        server_uuid: of the server whose log the position is in.
        binlog_file, offset: the end of the log at which the structures are valid.
        charsets: the default character sets of tables and, under None, of databases.
        keyed: the tables with a primary key.
    """

    server_uuid: str
    binlog_file: str
    offset: int
    tables: Sequence[TableSchema]
    charsets: Mapping[tuple[str, str | None], str]
    keyed: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class _Catalog:
    tables: Sequence[TableSchema]
    charsets: Mapping[tuple[str, str | None], str]
    keyed: frozenset[TableName]


def read_catalog_snapshot(endpoint: Endpoint, wanted: Callable[[str, str], bool]) -> CatalogSnapshot:
    """The structures of the tables and sequences for which `wanted(schema, table)` is true, and the position at which
    they are valid.

    Raises:
        SourceUnavailable, SourceError: the server does not answer, or the tables' structures keep changing.
    """
    with closing(open_connection(endpoint)) as connection:
        server = server_identity(connection)
        catalog = _read(connection, wanted)
        for _ in range(STILL_TRIES):
            time.sleep(SETTLE_SECONDS)
            here = server_position(connection, server)
            time.sleep(SETTLE_SECONDS)
            reread = _read(connection, wanted)
            if reread == catalog:
                return CatalogSnapshot(
                    server.uuid, here.binlog_file, here.offset, catalog.tables, catalog.charsets, catalog.keyed
                )
            catalog = reread
    raise SourceError("table structures keep changing", hint="run again when the migration is finished")


def _read(connection: "Connection[Any]", wanted: Callable[[str, str], bool]) -> _Catalog:
    charsets: dict[tuple[str, str | None], str] = {}
    for schema, name in query(connection, _DATABASES, (SYSTEM_SCHEMAS,)):
        if (charset := charset_named(name)) is not None:
            charsets[str(schema), None] = charset
    for schema, table, collation in query(connection, _TABLES, (SYSTEM_SCHEMAS,)):
        if wanted(schema, table) and (charset := charset_named(collation or "")) is not None:
            charsets[str(schema), str(table)] = charset
    keyed = frozenset((str(schema), str(table)) for schema, table in query(connection, _KEYED, (SYSTEM_SCHEMAS,)))
    # The decoder tells sequences from tables by their columns.
    return _Catalog(read_schemas(connection, wanted, (BASE_TABLE, SEQUENCE)), charsets, keyed)
