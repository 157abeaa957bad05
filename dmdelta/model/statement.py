"""A statement of a source's log that changes structures."""

from dataclasses import dataclass

from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A DDL statement.

    Attributes:
        position: where its event begins.
        schema: the session's default schema, empty if it had none.
        server_charset: the session's `character_set_server`, which CREATE DATABASE falls back on; None: not told.
    """

    position: Position
    schema: str
    sql: str
    server_charset: str | None = None
