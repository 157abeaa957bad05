"""A DDL statement in a source's log."""

from dataclasses import dataclass

from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A DDL statement.

    Attributes:
        position: where its event starts.
        schema: the session's default schema, empty if it had none.
        server_charset: the session's `character_set_server`, the default of CREATE DATABASE; None if not logged.
    """

    position: Position
    schema: str
    sql: str
    server_charset: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The session in which a statement was executed.

    Attributes:
        default_schema: empty for none.
        explicit_timestamps: explicit_defaults_for_timestamp is ON.
    """

    default_schema: str
    explicit_timestamps: bool = False
