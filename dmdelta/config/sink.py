"""Section `sink`: an operational database that also receives the changes."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from dmdelta.config.section import Password, Section
from dmdelta.config.source import SecurityConfig

OWN_VARIABLES = frozenset(
    {
        "autocommit",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "collation_connection",
        "foreign_key_checks",
        "max_error_count",
        "sql_mode",
        "time_zone",
        "transaction_isolation",
        "tx_isolation",
        "unique_checks",
    }
)
"""Session variables that the sink sets itself: the values of rows, and their order, depend on them."""


def _assert_not_own(name: str) -> str:
    if name.lower() in OWN_VARIABLES:
        hint = "use foreign-key-checks: true" if name.lower() == "foreign_key_checks" else "remove it"
        raise ValueError(f"the sink sets {name} itself: {hint}")
    return name


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), AfterValidator(_assert_not_own)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]


class SinkConfig(Section):
    """A MySQL, MariaDB or TiDB server that the changes in bronze are replicated to, independently of silver.

    Its checkpoint is written every `syncer.checkpoint-flush-interval`.
    """

    kind: Literal["mysql", "tidb"]
    """Dialect of the server: `mysql` for MySQL and MariaDB."""

    host: str
    """Hostname or address of the server."""

    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    """TCP port of the server."""

    user: str
    """Account with SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP and INDEX on the target's schemas."""

    password: Password = SecretStr("")
    """Password of the account: `${NAME}` reads the environment variable NAME, `${file:PATH}` reads a file, and
    `{{secrets/<scope>/<key>}}`, in quotes, reads Databricks' secrets."""

    security: SecurityConfig | None = None
    """TLS for connections to the server; without it the connection is not encrypted, even if the server supports TLS.
    """

    session: dict[Variable, bool | int | str] = Field(default_factory=dict)
    """Session variables of the sink's connections, for example `innodb_lock_wait_timeout: 10` or
    `tidb_mem_quota_query: 4294967296`. The sink sets `sql_mode`, `time_zone`, the character sets, the isolation level,
    `autocommit`, `foreign_key_checks`, `unique_checks` and `max_error_count` itself."""

    worker_count: Annotated[int, Field(ge=1, le=256)] = 16
    """Number of parallel connections: changes that share a key value are executed in order."""

    batch: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Approximate number of row changes in one transaction of a worker."""

    compact: bool = True
    """Combine several changes of the same row into one."""

    multiple_rows: bool = True
    """Combine adjacent changes into one multi-row statement."""

    flush: Literal["async", "sync"] = "async"
    """`async`: write the checkpoint while work continues. `sync`: all work waits for it."""

    safe_mode: bool = False
    """Apply every change as if it may have been applied before: slower, and replaces rows silently."""

    foreign_key_checks: bool = False
    """Have the server check foreign keys: changes then wait for those of their parent rows, and none are compacted.
    Tables whose foreign keys change rows implicitly (CASCADE, SET NULL) are executed by one worker."""

    metadata: Name = "dm_meta"
    """Schema of the sink's own tables on the server."""
