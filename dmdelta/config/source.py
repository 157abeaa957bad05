"""Section `sources`: the servers, or the archives, whose binlogs are read."""

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
    """TLS towards a server, verified."""

    ssl_ca: FolderPath
    """CA certificate (PEM) that the server's certificate must chain to."""

    ssl_verify_host: bool = True
    """Whether the certificate must name the host, too; those that a server makes for itself do not."""

    ssl_cert: FolderPath | None = None
    """Client certificate (PEM), for accounts that demand one."""

    ssl_key: FolderPath | None = None
    """Private key (PEM) of the client certificate."""

    @model_validator(mode="after")
    def _key_with_certificate(self) -> "SecurityConfig":
        if (self.ssl_cert is None) != (self.ssl_key is None):
            raise ValueError("ssl-cert and ssl-key belong together")
        return self

    @property
    def tls(self) -> Tls:
        """As connections take it."""
        return Tls(self.ssl_ca, self.ssl_cert, self.ssl_key, self.ssl_verify_host)


class MetaConfig(Section):
    """Where the first start begins. A recorded checkpoint goes before it."""

    binlog_name: str | None = None
    """Binlog file to begin with, such as `binlog.000042`."""

    binlog_pos: Annotated[int, Field(ge=4)] = 4
    """Byte offset of the first event in that file."""

    binlog_gtid: str | None = None
    """GTID set that counts as already read, instead of a file; for a server only."""

    @model_validator(mode="after")
    def _some_position(self) -> "MetaConfig":
        if (self.binlog_name is None) == (self.binlog_gtid is None):
            raise ValueError("meta has either binlog-name or binlog-gtid")
        if self.binlog_name is None and "binlog_pos" in self.model_fields_set:
            raise ValueError("binlog-pos needs binlog-name")
        if self.binlog_name is not None:
            try:
                file_number(self.binlog_name)
            except ConfigError as error:
                raise ValueError(error.message) from error
        return self


class PurgeConfig(Section):
    """How long segments are kept that have landed; what has not landed is never removed."""

    expires: Duration = timedelta(hours=24)
    """So long after it was cut, a segment is removed."""

    remain_space: Annotated[int, Field(ge=0)] = 15
    """GiB of the disk that are to stay free: if there are fewer, segments are removed that have not expired, too."""


class RelayConfig(Section):
    """Where the raw binlog is kept until it has landed, and for how long after that."""

    dir: FolderPath | None = None
    """Folder of the segments, one folder a source below it; the executors must be able to read it. `relay` below the
    lakehouse's root by default."""

    purge: PurgeConfig = PurgeConfig()
    """What is removed of the segments that have landed."""


class SourceConfig(Section):
    """One source: a server (`host`) or a folder of whole binlog files (`binlog-dir`)."""

    source_id: Annotated[str, Field(pattern=SOURCE_ID_PATTERN, max_length=32)]
    """Name of the source: part of every row, folder and commit. Never change it afterwards."""

    host: str | None = None
    """Host name or address of the server."""

    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    """TCP port of the server."""

    user: str | None = None
    """Account with REPLICATION SLAVE, REPLICATION CLIENT and SELECT."""

    password: Password = SecretStr("")
    """Its password: write `${NAME}` to take it from the environment variable NAME, `${file:PATH}` to take it from a
    file, or `{{secrets/<scope>/<key>}}`, in quotes, to take it from Databricks' secrets."""

    security: SecurityConfig | None = None
    """TLS towards the server; without it the connection is not encrypted, even if the server offers TLS."""

    flavor: Literal["mysql", "mariadb"] | None = None
    """Kind of server; one of another kind is refused. Any kind by default."""

    server_id: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = None
    """Replica id that we announce, unique among the server's replicas; random if left away."""

    meta: MetaConfig | None = None
    """Where the first start begins; without it, at the oldest binlog that there is."""

    relay: RelayConfig = RelayConfig()
    """Its segments: where they are, and what of them is kept."""

    binlog_dir: FolderPath | None = None
    """Folder of whole binlog files to read instead of a server, such as an archive."""

    route_rules: tuple[str, ...] | None = None
    """Names of the `routes` that count for this source; all of them without it, none for an empty list."""

    filter_rules: tuple[str, ...] | None = None
    """Names of the `filters` that count for this source; all of them without it, none for an empty list."""

    expression_filters: tuple[str, ...] | None = None
    """Names in `expression-filter` that count for this source; all of them without it, none for an empty list."""

    @model_validator(mode="after")
    def _server_or_archive(self) -> "SourceConfig":
        if (self.host is None) == (self.binlog_dir is None):
            raise ValueError("a source has either host or binlog-dir")
        if self.host is not None and self.user is None:
            raise ValueError("a source with host needs user")
        unread = sorted(self.model_fields_set - _KEYS_OF_AN_ARCHIVE) if self.host is None else []
        if unread:
            raise ValueError(f"a source with binlog-dir has no use for: {', '.join(map(hyphenated, unread))}")
        if self.meta is not None and self.meta.binlog_name is None and self.host is None:
            raise ValueError("an archive begins at a file: meta needs binlog-name")
        return self
