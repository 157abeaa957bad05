"""Section `sources`: the servers or archives whose binlogs are read."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, SecretStr, model_validator

from dmdelta.config.section import Duration, FolderPath, Password, Section, hyphenated
from dmdelta.errors import ConfigError
from dmdelta.model.position import file_number
from dmdelta.model.tls import Tls

SOURCE_ID_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
_KEYS_OF_RULES = {"route_rules", "filter_rules", "expression_filters"}
_KEYS_OF_AN_ARCHIVE = {"source_id", "binlog_dir", "meta", "relay"} | _KEYS_OF_RULES


class SecurityConfig(Section):
    """Verified TLS for connections to a server."""

    ssl_ca: FolderPath
    """CA certificate (PEM) that the server's certificate must chain to."""

    ssl_verify_host: bool = True
    """Whether the certificate must also match the host name; certificates that a server generates for itself do not."""

    ssl_cert: FolderPath | None = None
    """Client certificate (PEM), for accounts that require one."""

    ssl_key: FolderPath | None = None
    """Private key (PEM) of the client certificate."""

    @model_validator(mode="after")
    def _key_with_certificate(self) -> "SecurityConfig":
        if (self.ssl_cert is None) != (self.ssl_key is None):
            raise ValueError("ssl-cert and ssl-key must be set together")
        return self

    @property
    def tls(self) -> Tls:
        """The settings in the form that connections use."""
        return Tls(self.ssl_ca, self.ssl_cert, self.ssl_key, self.ssl_verify_host)


class MetaConfig(Section):
    """Where the first run starts. A recorded checkpoint takes precedence."""

    binlog_name: str | None = None
    """Binlog file to start from, such as `binlog.000042`."""

    binlog_pos: Annotated[int, Field(ge=4)] = 4
    """Byte offset of the first event in that file."""

    binlog_gtid: str | None = None
    """GTID set of the transactions to skip as already read, instead of a file; only for a server."""

    @model_validator(mode="after")
    def _some_position(self) -> "MetaConfig":
        if (self.binlog_name is None) == (self.binlog_gtid is None):
            raise ValueError("meta requires exactly one of binlog-name and binlog-gtid")
        if self.binlog_name is None and "binlog_pos" in self.model_fields_set:
            raise ValueError("binlog-pos requires binlog-name")
        if self.binlog_name is not None:
            try:
                file_number(self.binlog_name)
            except ConfigError as error:
                raise ValueError(error.message) from error
        return self


class PurgeConfig(Section):
    """How long landed segments are kept; a segment that has not landed is never removed."""

    expires: Duration = timedelta(hours=24)
    """Age after which a landed segment is removed, counted from its creation."""

    remain_space: Annotated[int, Field(ge=0)] = 15
    """Free disk space to keep, in GiB: below it, landed segments are removed even if they have not expired."""


class RelayConfig(Section):
    """Where the raw binlog is kept until it has landed, and how long it is kept afterwards."""

    dir: FolderPath | None = None
    """Folder of the segments, with one subfolder per source; the executors must be able to read it. By default `relay`
    in the lakehouse's root."""

    purge: PurgeConfig = PurgeConfig()
    """Which landed segments are removed."""


class SourceConfig(Section):
    """One source: a server (`host`) or a folder of whole binlog files (`binlog-dir`)."""

    source_id: Annotated[str, Field(pattern=SOURCE_ID_PATTERN, max_length=32)]
    """Name of the source: part of every row, folder and commit. Never change it afterwards."""

    host: str | None = None
    """Hostname or address of the server."""

    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    """TCP port of the server."""

    user: str | None = None
    """Account with REPLICATION SLAVE, REPLICATION CLIENT and SELECT."""

    password: Password = SecretStr("")
    """Password of the account: `${NAME}` reads the environment variable NAME, `${file:PATH}` reads a file, and
    `{{secrets/<scope>/<key>}}`, in quotes, reads Databricks' secrets."""

    security: SecurityConfig | None = None
    """TLS for connections to the server; without it the connection is not encrypted, even if the server supports TLS.
    """

    flavor: Literal["mysql", "mariadb"] | None = None
    """Kind of server; a server of another kind is refused. By default any kind is accepted."""

    server_id: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = None
    """Replica ID to register with, unique among the server's replicas; random by default."""

    meta: MetaConfig | None = None
    """Where the first run starts; by default at the oldest available binlog."""

    relay: RelayConfig = RelayConfig()
    """Where the source's segments are kept, and for how long."""

    binlog_dir: FolderPath | None = None
    """Folder of complete binlog files to read instead of a server, such as an archive."""

    route_rules: tuple[str, ...] | None = None
    """Names of the `routes` that apply to this source; by default all of them, none for an empty list."""

    filter_rules: tuple[str, ...] | None = None
    """Names of the `filters` that apply to this source; by default all of them, none for an empty list."""

    expression_filters: tuple[str, ...] | None = None
    """Names in `expression-filter` that apply to this source; by default all of them, none for an empty list."""

    @model_validator(mode="after")
    def _server_or_archive(self) -> "SourceConfig":
        if (self.host is None) == (self.binlog_dir is None):
            raise ValueError("a source requires exactly one of host and binlog-dir")
        if self.host is not None and self.user is None:
            raise ValueError("a source with host requires user")
        unread = sorted(self.model_fields_set - _KEYS_OF_AN_ARCHIVE) if self.host is None else []
        if unread:
            raise ValueError(f"a source with binlog-dir does not support: {', '.join(map(hyphenated, unread))}")
        if self.meta is not None and self.meta.binlog_name is None and self.host is None:
            raise ValueError("an archive starts from a file: meta requires binlog-name")
        return self
