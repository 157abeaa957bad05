"""The identity of a server and the extent of its binlog."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.errors import ServerChanged, SourceError
from dmdelta.model.gtid import Flavor, GtidSet, parse_gtid_set
from dmdelta.source.connection import START_OVER, query, query_named

if TYPE_CHECKING:
    from pymysql.connections import Connection


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The identity of a server.

    Attributes:
        version: (major, minor, patch).
        uuid: the server's `server_uuid`; MariaDB has none: `mariadb-<server_id>`.
    """

    flavor: Flavor
    version: tuple[int, int, int]
    uuid: str
    server_id: int


@dataclass(frozen=True, slots=True)
class ServerPosition:
    """A position in a server's binlog.

    Attributes:
        server_uuid: of the server: `ServerIdentity.uuid`.
        gtid_set: all transactions before it; None for a MySQL server without GTIDs.
    """

    server_uuid: str
    binlog_file: str
    offset: int
    gtid_set: GtidSet | None


@dataclass(frozen=True, slots=True)
class ServerLog:
    """What a server's binlog holds: the sizes (bytes) of its files, oldest first, and its GTID sets if it has GTIDs."""

    uuid: str
    flavor: Flavor
    files: dict[str, int]
    executed: GtidSet | None = None
    purged: GtidSet | None = None


def flavor_of(version: str) -> Flavor:
    """The flavor according to `SELECT VERSION()`."""
    return "mariadb" if "mariadb" in version.lower() else "mysql"


def version_of(text: str) -> tuple[int, int, int]:
    """`8.0.31-log` → (8, 0, 31); also with MariaDB's replication prefix `5.5.5-`."""
    digits = text.removeprefix("5.5.5-").split("-")[0].split(".")
    major, minor, patch = (int("".join(filter(str.isdigit, part)) or 0) for part in [*digits, "0", "0"][:3])
    return major, minor, patch


def server_identity(connection: "Connection[Any]") -> ServerIdentity:
    """Flavor, version and identity of a server.

    Raises:
        SourceUnavailable, SourceError: it does not answer.
    """
    text, server_id = query(connection, "SELECT VERSION(), @@global.server_id")[0]
    flavor = flavor_of(text)
    uuid = f"mariadb-{server_id}"
    if flavor == "mysql":
        uuid = str(query(connection, "SELECT @@global.server_uuid")[0][0])
    return ServerIdentity(flavor, version_of(text), uuid, int(server_id))


def server_position(connection: "Connection[Any]", server: ServerIdentity | None = None) -> ServerPosition:
    """Where the server's binlog ends now.

    Raises:
        SourceError: the server writes no binlog, or the account lacks the privilege.
    """
    server = server or server_identity(connection)
    row = _binlog_status(connection, server)
    gtid_set: GtidSet | None = None
    if server.flavor == "mariadb":
        text = query(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (row["file"], row["position"]))[0][0]
        gtid_set = parse_gtid_set(text or "", "mariadb")
    elif gtid_mode(connection).startswith("ON"):
        gtid_set = parse_gtid_set(row["executed_gtid_set"], "mysql")
    return ServerPosition(server.uuid, row["file"], int(row["position"]), gtid_set)


def require_server(uuid: str, planned: str | None, where: object) -> None:
    """Check that a server is the one on which a snapshot was planned: its rows belong to positions in that one's log.

    Args:
        planned: None: unknown.
        where: the address that led to the server.

    Raises:
        ServerChanged: it is another one.
    """
    if planned is not None and uuid != planned:
        raise ServerChanged(f"{where} leads to the server {uuid}, not to {planned} as planned", hint=START_OVER)


def log_end(connection: "Connection[Any]", server: ServerIdentity) -> tuple[str, int]:
    """File and offset where the server's binlog ends now: one statement, which reads no file. Raises as
    `server_position`.
    """
    row = _binlog_status(connection, server)
    return row["file"], int(row["position"])


def _binlog_status(connection: "Connection[Any]", server: ServerIdentity) -> dict[str, Any]:
    rows = query_named(connection, status_statement(server))
    if not rows:
        raise SourceError("the server writes no binlog", hint="start it with --log-bin and binlog_format=ROW")
    return rows[0]


def status_statement(server: ServerIdentity) -> str:
    """The statement that shows the state of the server's binlog."""
    newer = server.flavor == "mysql" and server.version >= (8, 2, 0)
    return "SHOW BINARY LOG STATUS" if newer else "SHOW MASTER STATUS"


def sends_column_names(connection: "Connection[Any]") -> bool:
    """Whether the table maps that a server writes now contain column names.

    Raises:
        SourceUnavailable, SourceError: it does not answer.
    """
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")
    return any(str(value).upper() == "FULL" for _, value in rows)


def gtid_mode(connection: "Connection[Any]") -> str:
    """A MySQL server's `gtid_mode`: it writes GTIDs in `ON` and `ON_PERMISSIVE`; in `ON` every transaction has one."""
    return str(query(connection, "SELECT @@global.gtid_mode")[0][0]).upper()


def server_log(connection: "Connection[Any]", server: ServerIdentity) -> ServerLog:
    """The files that the server still has, and its executed and purged GTID sets.

    Raises:
        SourceError: no binlog, or the account lacks the privilege.
    """
    rows = query_named(connection, "SHOW BINARY LOGS")
    files = {str(row["log_name"]): int(row["file_size"]) for row in rows}
    if not files:
        raise SourceError("the server writes no binlog", hint="start it with --log-bin and binlog_format=ROW")
    if server.flavor == "mariadb":
        executed = query(connection, "SELECT @@global.gtid_binlog_pos")[0][0]
        purged = query(connection, "SELECT BINLOG_GTID_POS(%s, 4)", (next(iter(files)),))[0][0]
    elif gtid_mode(connection).startswith("ON"):
        executed, purged = query(connection, "SELECT @@global.gtid_executed, @@global.gtid_purged")[0]
    else:
        return ServerLog(server.uuid, server.flavor, files)
    return ServerLog(
        server.uuid,
        server.flavor,
        files,
        parse_gtid_set(executed or "", server.flavor),
        parse_gtid_set(purged or "", server.flavor),
    )
