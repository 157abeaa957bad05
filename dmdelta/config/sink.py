"""Section `sink`: an operational database that gets the changes, too."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from dmdelta.config.section import Password, Section
from dmdelta.config.source import SecurityConfig

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]


class SinkConfig(Section):
    """A MySQL, MariaDB or TiDB server on which bronze's changes are executed, at its own pace.

    Its checkpoint is written every `syncer.checkpoint-flush-interval`.
    """

    kind: Literal["mysql", "tidb"]
    """Dialect of the server: `mysql` for MySQL and MariaDB."""

    host: str
    """Host name or address of the server."""

    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    """TCP port of the server."""

    user: str
    """Account with SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP and INDEX on the target's schemas."""

    password: Password = SecretStr("")
    """Its password: write `${NAME}` to take it from the environment variable NAME, `${file:PATH}` to take it from a
    file, or `{{secrets/<scope>/<key>}}`, in quotes, to take it from Databricks' secrets."""

    security: SecurityConfig | None = None
    """TLS towards the server; without it the connection is not encrypted, even if the server offers TLS."""

    worker_count: Annotated[int, Field(ge=1, le=256)] = 16
    """Connections that execute side by side: changes that meet in a key stay in order."""

    batch: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Row changes in one transaction of a worker, about."""

    compact: bool = True
    """Execute one change in place of many of the same row."""

    multiple_rows: bool = True
    """Write neighbouring changes as one statement of many rows."""

    flush: Literal["async", "sync"] = "async"
    """Whether the checkpoint is written beside the work, or all work waits for it."""

    safe_mode: bool = False
    """Execute everything as if it may have been executed before: slower, and replaces rows silently."""

    foreign_key_checks: bool = False
    """Have the server check foreign keys: changes then wait for those of their parent rows, and none are compacted.
    Tables whose foreign keys change rows by themselves (CASCADE, SET NULL) are executed by one worker."""

    metadata: Name = "dm_meta"
    """Schema of the sink's own tables on the server."""
