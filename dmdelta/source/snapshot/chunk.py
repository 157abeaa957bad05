"""A chunk of a table and how to read it. Runs where the chunk is read: on the executors."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from dmdelta.model.gtid import Flavor
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.connection import explained, open_connection, query
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import ServerPosition, require_server, server_identity, server_position
from dmdelta.source.snapshot.barrier import SnapshotBarrier, meet
from dmdelta.source.snapshot.binary_rows import row_packets
from dmdelta.source.snapshot.structure import hold_structure

if TYPE_CHECKING:
    from pymysql.connections import Connection

LOCK_SECONDS = 30
"""How long a chunk that must be read at one known position waits for the writers of its table."""
_SESSION = {
    "mysql": ("character_set_results = NULL", "sql_mode = ''", "net_write_timeout = 3600", "max_execution_time = 0"),
    "mariadb": ("character_set_results = NULL", "sql_mode = ''", "net_write_timeout = 3600", "max_statement_time = 0"),
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A subset of the rows of a table.

    Attributes:
        number: position in the snapshot, starting at 1.
        condition: SQL condition that selects the rows; empty selects all rows.
        transactional: the storage engine supports consistent reads.
        rows: estimated number of rows.
    """

    number: int
    schema: TableSchema
    condition: str = ""
    transactional: bool = True
    rows: int = 0

    @property
    def is_exact(self) -> bool:
        """The chunk must be read at one position: without a key, the log cannot correct rows that are read later."""
        return not self.schema.primary_key

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "schema": self.schema.to_json(defaults=True)})

    @classmethod
    def from_json(cls, text: str) -> "Chunk":
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "schema": TableSchema.from_json(fields["schema"])})


@dataclass(frozen=True, slots=True)
class RowPackets:
    """Rows as received: whole packets of a binary result set up to `end`; ignore the bytes after it."""

    data: bytes
    end: int


def read_chunk(endpoint: Endpoint, chunk: Chunk, flavor: Flavor) -> Iterator[ServerPosition | RowPackets]:
    """Yields the log position from before the chunk was read, then its rows, in bounded memory.

    Rows of a table with a key may be newer than that position: the log is applied over them, key by key. Without a key
    that is impossible, so such a table is locked while its reader's snapshot is opened, and for the whole read if its
    storage engine has no snapshots. The rows are then exactly those at the position.

    Raises:
        StructureChanged: the table has another structure than planned.
        ServerChanged: the address leads to another server since the position was read.
        SourceUnavailable, SourceError: the server does not answer, or refuses the statement.
    """
    with ExitStack() as opened:
        connection = opened.enter_context(closing(_open(endpoint, flavor)))
        if chunk.is_exact:
            observer, (connection, position) = connection, _locked(opened, connection, endpoint, chunk, flavor)
            yield position
        else:
            observer = connection
            yield server_position(connection)
            query(connection, "START TRANSACTION")
        yield from _rows(connection, lambda: nullcontext(observer), chunk, flavor, exact=chunk.is_exact)


def read_together(
    endpoint: Endpoint, chunks: Sequence[Chunk], flavor: Flavor, meeting: SnapshotBarrier, number: int
) -> Iterator[tuple[Chunk, Iterator[ServerPosition | RowPackets]]]:
    """Each chunk with what `read_chunk` yields for it, all read at one position, which the readers of `meeting` share.

    Args:
        number: of this reader, starting at 0.

    Raises:
        StructureChanged: a table has another structure than planned.
        SourceUnavailable, SourceError: the server does not answer, or refuses the statement; or the barrier failed.
    """

    def observe() -> "closing[Connection[Any]]":
        return closing(open_connection(endpoint))  # for each chunk: it would be idle while a long one is read

    with closing(_open(endpoint, flavor)) as connection:
        position = meet(connection, meeting, number)
        for chunk in chunks:
            yield chunk, chain([position], _rows(connection, observe, chunk, flavor, exact=True))


def _rows(
    connection: "Connection[Any]",
    observe: "Callable[[], AbstractContextManager[Connection[Any]]]",
    chunk: Chunk,
    flavor: Flavor,
    *,
    exact: bool,
) -> Iterator[RowPackets]:
    """The rows, while the table has the planned structure: `connection` has an open transaction, or locks the table.

    Args:
        observe: a connection without a snapshot from before.
        exact: the rows are those at one position, where the log of the table continues.
    """
    with observe() as observer:
        hold_structure(connection, observer, chunk.schema, exact=exact)
    select = f"SELECT {select_list(chunk.schema, flavor)} FROM {quoted_name(chunk.schema.schema, chunk.schema.table)}"
    if chunk.condition:
        select += f" WHERE {chunk.condition}"
    for packets, end in row_packets(connection, select):
        yield RowPackets(packets, end)


def select_list(schema: TableSchema, flavor: Flavor) -> str:
    """The column list in the form that `binlog.resultset.row_reader` requires."""
    return ", ".join(_selected(column, flavor) for column in schema.columns)


def _selected(column: Column, flavor: Flavor) -> str:
    name = quoted_name(column.name)
    if column.type in ("enum", "set"):
        return f"CAST(CAST({name} AS UNSIGNED) AS CHAR)"  # the server would choose the width of a number
    if column.type == "binary" and flavor == "mariadb":
        return f"CAST({name} AS BINARY({column.length}))"  # INET4, INET6 and UUID would be sent as text
    return name


def _open(endpoint: Endpoint, flavor: Flavor) -> "Connection[Any]":
    with ExitStack() as failed:
        connection = failed.enter_context(closing(open_connection(endpoint)))
        # Other levels read rows that are rolled back later, or lock those that are read.
        query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        query(connection, "SET " + ", ".join(f"SESSION {setting}" for setting in _SESSION[flavor]))
        failed.pop_all()
    return connection


def _lock(connection: "Connection[Any]", table: TableSchema) -> None:
    with explained(
        f"{table} has no key, so it must be locked briefly while its snapshot is opened",
        hint="GRANT LOCK TABLES ON the schema to the account, or exclude the table with the block-allow-list",
    ):
        query(connection, f"LOCK TABLES {quoted_name(table.schema, table.table)} READ")


def _locked(
    opened: ExitStack, locker: "Connection[Any]", endpoint: Endpoint, chunk: Chunk, flavor: Flavor
) -> tuple["Connection[Any]", ServerPosition]:
    """The connection to read with, and the log position while writes to the table are blocked."""
    query(locker, f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
    _lock(locker, chunk.schema)
    position = server_position(locker)
    if not chunk.transactional:
        return locker, position
    reader = opened.enter_context(closing(_open(endpoint, flavor)))
    query(reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    query(locker, "UNLOCK TABLES")
    require_server(server_identity(reader).uuid, position.server_uuid, endpoint)
    return reader, position
