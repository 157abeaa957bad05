"""Deletes the rows that a reload replaces, in transactions of bounded size."""

from typing import TYPE_CHECKING, Any

from dmdelta.sink.target.connection import execute
from dmdelta.sink.target.metadata import FLUSHER, Metadata
from dmdelta.sink.target.target_session import TargetSession

if TYPE_CHECKING:
    from pymysql.connections import Connection

ROWS = 10_000
"""Rows of one transaction."""


def empty_table(session: TargetSession, metadata: Metadata, table: str, own: str) -> None:
    """Delete rows of a table. Rows that reference them stay: they are of tables with a log of their own.

    Args:
        session: closed afterwards.
        table: its qualified name, as SQL.
        own: the condition that selects the rows; '' for all.

    Raises:
        SinkError: the target refuses. TargetUnavailable: it does not answer. Fenced: another run has taken over.
    """
    delete = f"DELETE FROM {table}{' WHERE ' * bool(own)}{own} LIMIT {ROWS}"
    try:
        session.attempt(lambda _: _delete(session.connection(), metadata, delete), f"{session.server}, table {table},")
    finally:
        session.close()


def _delete(connection: "Connection[Any]", metadata: Metadata, delete: str) -> None:
    execute(connection, "SET foreign_key_checks = 0")
    deleted = ROWS
    while deleted == ROWS:
        metadata.fence(connection, FLUSHER)
        deleted = execute(connection, delete)
        connection.commit()
