"""Reading one table from several connections that all see it as it was at one known position."""

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.errors import SourceError
from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import explained, open_connection, query, quoted
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.key_ranges import key_ranges
from dmdelta.source.server import ServerPosition, server_position
from dmdelta.source.snapshot import without_snapshots

if TYPE_CHECKING:
    from pymysql.connections import Connection

LOCK_SECONDS = 10
"""How long writers of the table may have to wait for those before us."""
_SIZE = "SELECT table_rows, engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_LIMIT = {"mysql": "max_execution_time", "mariadb": "max_statement_time"}


@dataclass(frozen=True, slots=True)
class SteadyTable:
    """A table as it was at a position, for as long as the connections are open.

    Attributes:
        rows: how many there are, about.
        parts: conditions (SQL) that together hold every row once; '' for all.
    """

    schema: TableSchema
    position: ServerPosition
    rows: int
    parts: Sequence[str]
    connections: Sequence["Connection[Any]"]

    @property
    def name(self) -> str:
        """The table in SQL."""
        return quoted(self.schema.schema, self.schema.table)

    def ask(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        """The rows of statements with their arguments, each connection working on one at a time.

        Raises:
            SourceUnavailable, SourceError: the server does not answer, or refuses.
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

        with ThreadPoolExecutor(len(self.connections), thread_name_prefix="steady") as pool:
            return list(pool.map(run, statements))


@contextmanager
def open_steady(endpoint: Endpoint, name: TableName, flavor: Flavor, readers: int) -> Iterator[SteadyTable]:
    """Lock a table for the moment in which `readers` snapshots of it are opened, and ask where the log is.

    A table whose engine has no snapshots stays locked for writers, and is read by one connection.

    Raises:
        SourceError: there is no such table, or the account may not lock it (it needs LOCK TABLES).
        SourceUnavailable: the server does not answer, or writers do not let go of the table in time.
    """
    with ExitStack() as opened:

        def session() -> "Connection[Any]":
            connection = opened.enter_context(closing(open_connection(endpoint)))
            query(connection, f"SET SESSION sql_mode = '', {_LIMIT[flavor]} = 0")
            return connection

        locker = session()
        query(locker, f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        found = query(locker, _SIZE, name)
        schemas = read_schemas(locker, lambda schema, table: (schema, table) == name)
        if not found or not schemas:
            raise SourceError(f"{endpoint} has no table {'.'.join(name)}", hint="it was dropped, or renamed")
        rows, engine = found[0]
        alone = without_snapshots(str(engine or ""))
        waiting = [] if alone else [session() for _ in range(readers)]
        with explained(
            f"{'.'.join(name)} must be locked for the moment in which it is known where its log is",
            hint="GRANT LOCK TABLES ON the schema to the account",
        ):
            query(locker, f"LOCK TABLES {quoted(*name)} READ")
        position = server_position(locker)
        for connection in waiting:
            query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        if not alone:
            query(locker, "UNLOCK TABLES")
        connections = waiting or [locker]
        parts = key_ranges(connections[0], schemas[0], int(rows or 0))
        yield SteadyTable(schemas[0], position, int(rows or 0), parts, connections)
