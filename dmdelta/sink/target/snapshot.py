"""A table of the target as it is at one moment, for whoever compares it with the source."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableName
from dmdelta.sink.target.connection import TargetServer, ask, connect, translated

if TYPE_CHECKING:
    from pymysql.connections import Connection

_FOUND = """SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES
    WHERE LOWER(TABLE_SCHEMA) = LOWER(%s) AND LOWER(TABLE_NAME) = LOWER(%s) AND TABLE_TYPE = 'BASE TABLE'"""
_LIMIT = {"mysql": "max_execution_time", "mariadb": "max_statement_time"}


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """A session that sees all of the target as it was when it was opened.

    Attributes:
        flavor: whose SQL the target's is; TiDB's is MySQL's.
    """

    server: TargetServer
    connection: "Connection[Any]"
    flavor: Flavor

    def rows(self, sql: str, arguments: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            TargetUnavailable: the target does not answer. SinkError: it refuses.
        """
        try:
            return ask(self.connection, sql, arguments)
        except (pymysql.err.MySQLError, OSError) as error:
            raise translated(error, str(self.server)) from error

    def find(self, name: TableName) -> TableName | None:
        """The table's name as the target writes it: exactly so, or, if it has no such table, in another case."""
        names = {(schema, table) for schema, table, _ in self.rows(_FOUND, name)}
        return name if name in names else next(iter(sorted(names)), None)


@contextmanager
def open_target_snapshot(server: TargetServer) -> Iterator[TargetSnapshot]:
    """Open one.

    Raises:
        TargetUnavailable: the target does not answer. SinkError: it refuses.
    """
    with closing(connect(server, autocommit=False)) as connection:
        opened = TargetSnapshot(server, connection, "mysql")
        ((version,),) = opened.rows("SELECT VERSION()")
        flavor: Flavor = "mariadb" if "mariadb" in str(version).lower() else "mysql"
        opened.rows(f"SET SESSION sql_mode = '', {_LIMIT[flavor]} = 0")
        opened.rows("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.commit()
        opened.rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        yield TargetSnapshot(server, connection, flavor)
