"""Deletes the rows that a reload replaces, in transactions of bounded size."""

import time
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.sink.target.connection import TARGET_RETRY, TargetServer, connect, execute, is_retryable, translated
from dmdelta.sink.target.metadata import FLUSHER, Metadata

if TYPE_CHECKING:
    from pymysql.connections import Connection

ROWS = 10_000
"""Rows of one transaction."""


def empty_table(server: TargetServer, metadata: Metadata, table: str, own: str) -> None:
    """Delete rows of a table. Rows that reference them stay: they are of tables with a log of their own.

    Args:
        table: its qualified name, as SQL.
        own: the condition that selects the rows; '' for all.

    Raises:
        SinkError: the target refuses. TargetUnavailable: it does not answer. Fenced: another run has taken over.
    """
    delete = f"DELETE FROM {table}{' WHERE ' * bool(own)}{own} LIMIT {ROWS}"
    failures, deleted = 0, ROWS
    while deleted == ROWS:
        try:
            connection = connect(server, autocommit=False)
            try:
                deleted = _delete(connection, metadata, delete)
            finally:
                connection.close()
        except (pymysql.err.MySQLError, OSError) as error:
            failures += 1
            if not is_retryable(error) or failures >= TARGET_RETRY.attempts:
                raise translated(error, f"{server}, table {table},") from error
            time.sleep(TARGET_RETRY.delay(failures))


def _delete(connection: "Connection[Any]", metadata: Metadata, delete: str) -> int:
    """Returns the number of rows that the last transaction has deleted."""
    execute(connection, "SET foreign_key_checks = 0")
    deleted = ROWS
    while deleted == ROWS:
        metadata.fence(connection, FLUSHER)
        deleted = execute(connection, delete)
        connection.commit()
    return deleted
