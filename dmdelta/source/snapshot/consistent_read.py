"""Reads one table through several connections that all see it at one known position."""

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.errors import SourceError, SourceUnavailable
from dmdelta.model.gtid import Flavor
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import explained, open_connection, query
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import ServerPosition, server_identity, server_position
from dmdelta.source.snapshot.key_ranges import key_ranges
from dmdelta.source.snapshot.planner import without_snapshots

if TYPE_CHECKING:
    from pymysql.connections import Connection

LOCK_SECONDS = 10
"""How long writers of the table may wait for the writers before this lock."""
_SIZE = "SELECT table_rows, engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_LIMIT = {"mysql": "max_execution_time", "mariadb": "max_statement_time"}


@dataclass(frozen=True, slots=True)
class ConsistentTable:
    """A table at a position, for as long as the connections are open.

    Attributes:
        rows: estimated number of rows.
        parts: SQL conditions that together select every row exactly once; '' selects all.
    """

    schema: TableSchema
    position: ServerPosition
    rows: int
    parts: Sequence[str]
    connections: Sequence["Connection[Any]"]

    @property
    def name(self) -> str:
        """The quoted name of the table."""
        return quoted_name(self.schema.schema, self.schema.table)

    def ask(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        """The rows of statements with their arguments; each connection runs one at a time.

        Raises:
            SourceUnavailable, SourceError: the server does not answer, or refuses a statement.
        """
        free: queue.SimpleQueue[Connection[Any]] = queue.SimpleQueue()
        for connection in self.connections:
            free.put(connection)

        def run(statement: tuple[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
            connection = free.get()
            try:
                return query(connection, *statement)
            finally:
                free.put(connection)

        with ThreadPoolExecutor(len(self.connections), thread_name_prefix="reader") as pool:
            return list(pool.map(run, statements))


@contextmanager
def open_consistent(endpoint: Endpoint, name: TableName, flavor: Flavor, readers: int) -> Iterator[ConsistentTable]:
    """Lock a table while `readers` snapshots of it are opened, and read the log position.

    A table whose storage engine has no snapshots stays locked for writers and is read by one connection.

    Raises:
        SourceError: the table does not exist, or the account may not lock it (this requires LOCK TABLES).
        SourceUnavailable: the server does not answer, or writers do not release the table in time; or the address leads
            to more than one server.
    """
    with ExitStack() as opened:
        locker = opened.enter_context(closing(_session(endpoint, flavor)))
        query(locker, f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        status = query(locker, _SIZE, name)
        schemas = read_schemas(locker, lambda schema, table: (schema, table) == name)
        if not status or not schemas:
            raise SourceError(f"{endpoint} has no table {'.'.join(name)}", hint="it was dropped, or renamed")
        rows, engine = status[0]
        alone = without_snapshots(str(engine or ""))
        number = 0 if alone else readers
        waiting = [opened.enter_context(closing(_session(endpoint, flavor))) for _ in range(number)]
        with explained(
            f"{'.'.join(name)} must be locked briefly while its log position is read",
            hint="GRANT LOCK TABLES ON the schema to the account",
        ):
            query(locker, f"LOCK TABLES {quoted_name(*name)} READ")
        position = server_position(locker)
        for connection in waiting:
            query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        if not alone:
            query(locker, "UNLOCK TABLES")
        connections = waiting or [locker]
        if any(server_identity(connection).uuid != position.server_uuid for connection in connections):
            raise SourceUnavailable(f"{endpoint} leads to more than one server", hint="run again")
        parts = key_ranges(connections[0], schemas[0], int(rows or 0))
        yield ConsistentTable(schemas[0], position, int(rows or 0), parts, connections)


def _session(endpoint: Endpoint, flavor: Flavor) -> "Connection[Any]":
    with ExitStack() as failed:
        connection = failed.enter_context(closing(open_connection(endpoint)))
        query(connection, f"SET SESSION sql_mode = '', {_LIMIT[flavor]} = 0")
        failed.pop_all()
    return connection
