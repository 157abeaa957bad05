"""Connections to a server: opened with TLS and retries; every driver error becomes one of dmdelta's."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pymysql

from dmdelta.errors import PositionLost, SourceError, SourceUnavailable
from dmdelta.logging import get_logger
from dmdelta.model.retry import Retry
from dmdelta.model.tls import CUT_OFF_HINT, NO_TLS_HINT, SSL_REQUIRED, driver_options, password_bytes, tls_trouble
from dmdelta.source.endpoint import Endpoint

if TYPE_CHECKING:
    from pymysql.connections import Connection

_T = TypeVar("_T")
log = get_logger(__name__)

CONNECT_TIMEOUT = 5
"""Seconds; short, so that a relay that is stopping need not be killed."""
QUERY_TIMEOUT = 60

_RETRYABLE = frozenset({1040, 1053, 1077, 1158, 1159, 1160, 1161, 1203, 1205, 1317, 1927, 2002, 2003, 2005, 2006, 2013})
"""Too many connections, shutdown, network failure, a killed connection: the same call may succeed later."""

_HINTS = {
    1044: "grant the account the privileges that `dmdelta check` lists",
    1045: "correct user or password in the spec; a password usually comes from an environment variable. An account "
    "that requires TLS or a client certificate is refused with the same error: set security.ssl-ca, ssl-cert, ssl-key",
    1049: "correct the database name",
    1129: "the server blocks this host after failed logins: run FLUSH HOSTS (mysqladmin flush-hosts) on it",
    1130: "create the account for this host: CREATE USER 'name'@'%'",
    1142: "GRANT SELECT on the table to the account",
    1227: "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* to the account",
    1251: "the account's authentication plugin is not supported: use caching_sha2_password or mysql_native_password",
    1698: "the account does not log in with a password: create one that does",
    1820: "the account's password has expired: ALTER USER … IDENTIFIED BY …",
    1862: "the account's password has expired: ALTER USER … IDENTIFIED BY …",
    SSL_REQUIRED: NO_TLS_HINT,
    3118: "the account is locked: ALTER USER … ACCOUNT UNLOCK",
    3159: "the server requires TLS: set security.ssl-ca in the spec",
}


ONCE = Retry(attempts=1)
START_OVER = "run with --remove-meta: task-modes all and full then load every table again, incremental starts at `meta`"
"""The hint for a position that the server no longer has."""


def open_connection(
    endpoint: Endpoint, retry: Retry = ONCE, sleep: Callable[[float], object] = time.sleep
) -> "Connection[Any]":
    """A session in UTC with autocommit.

    Raises:
        SourceUnavailable: the server does not answer, after all attempts.
        SourceError: it refuses the connection: wrong password, host not allowed, no TLS, …
        ConfigError: a certificate cannot be read.
    """
    for failures in range(1, retry.attempts):
        try:
            return _connect(endpoint)
        except SourceUnavailable as error:
            delay = retry.delay(failures)
            log.warning("source unavailable, retrying", source=str(endpoint), in_s=delay, why=error.message)
            sleep(delay)
    return _connect(endpoint)


def _connect(endpoint: Endpoint) -> "Connection[Any]":
    with foreign_errors(endpoint):
        return pymysql.connect(
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.user,
            password=password_bytes(endpoint.password),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=QUERY_TIMEOUT,
            write_timeout=QUERY_TIMEOUT,
            init_command="SET time_zone = '+00:00'",
            program_name="dmdelta",
            **driver_options(endpoint.tls),
        )


def query(connection: "Connection[Any]", sql: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of one statement.

    Raises:
        SourceUnavailable, SourceError: according to the server's error.
    """
    with foreign_errors(f"{connection.host}:{connection.port}"), connection.cursor() as cursor:
        cursor.execute(sql, tuple(arguments) or None)
        return list(cursor.fetchall())


def query_named(connection: "Connection[Any]", sql: str) -> list[dict[str, Any]]:
    """All rows of one statement by lower-case column name: the columns of SHOW commands differ between servers."""
    with foreign_errors(f"{connection.host}:{connection.port}"), connection.cursor() as cursor:
        cursor.execute(sql)
        names = [column[0].lower() for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def unless_refused(ask: Callable[[], _T]) -> _T | None:
    """The server's answer; None if it refuses, for example because the account lacks the privilege.

    Raises:
        SourceUnavailable: the server does not answer.
    """
    try:
        return ask()
    except SourceUnavailable:
        raise
    except SourceError:
        return None


@contextmanager
def explained(why: str, hint: str) -> Iterator[None]:
    """Adds the purpose of a statement, and a hint, to the error with which the server refuses it.

    Raises:
        SourceUnavailable: the server does not answer. SourceError: it refuses the statement.
    """
    try:
        yield
    except SourceUnavailable:
        raise
    except SourceError as error:
        raise SourceError(f"{why}: {error.message}", hint=hint) from error


@contextmanager
def foreign_errors(where: object) -> Iterator[None]:
    """Convert PyMySQL's and the network's errors into dmdelta's."""
    try:
        yield
    except pymysql.err.MySQLError as error:
        raise _from_pymysql(error, str(where)) from error
    except RuntimeError as error:  # PyMySQL: the package for the account's authentication plugin is missing
        raise SourceError(f"cannot log in to {where}: {error}", hint="install the named package") from error
    except OSError as error:
        raise _tls_error(error, str(where)) or SourceUnavailable(
            f"lost the connection to {where}: {error}", hint="check host, port and firewall"
        ) from error


def _from_pymysql(error: pymysql.err.MySQLError, where: str) -> SourceError:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    return _tls_error(error, where) or server_error(code, text, where)


def _tls_error(error: Exception, where: str) -> SourceError | None:
    trouble = tls_trouble(error)
    return SourceError(f"no TLS connection to {where}: {trouble[0]}", hint=trouble[1]) if trouble else None


def server_error(code: int, text: str, where: str) -> SourceError:
    """The error for an error packet of a server."""
    if code == 1236:
        return _dump_error(text, where)
    if code in _RETRYABLE or code == 0:
        hint = "check host, port, firewall and the server" + (CUT_OFF_HINT if "SSL" in text else "")
        return SourceUnavailable(f"{where} does not answer: {text}", hint=hint, code=code)
    return SourceError(f"{where} refuses: {text}", hint=_HINTS.get(code, "see the server's message"), code=code)


def _dump_error(text: str, where: str) -> SourceError:
    lower = text.lower()
    if "same server_" in lower or "same server-" in lower:
        return SourceError(
            f"{where} ended the dump: {text}",
            hint="another replica uses the same server-id: set a unique server-id in the spec",
        )
    if "max_allowed_packet" in lower:
        return SourceError(f"{where} ended the dump: {text}", hint="raise max_allowed_packet on the server to 1G")
    if "binary log is not open" in lower or "binlog is not open" in lower:
        return SourceError(f"{where} has no binlog: {text}", hint="start the server with --log-bin")
    if "gtid_mode" in lower or "replicate anonymous" in lower:
        return SourceError(f"{where} ended the dump: {text}", hint=_gtid_mode_hint(lower))
    return PositionLost(
        f"{where} cannot continue from the requested position: {text}",
        hint=f"the binlog was purged or reset: {START_OVER}",
    )


def _gtid_mode_hint(lower: str) -> str:
    """Dumps by GTID set require gtid_mode ON; anonymous transactions are not sent in ON, GTIDs are not sent in OFF."""
    if "auto_position" in lower:
        return "SET GLOBAL gtid_mode = ON, or start at a file: `meta` with binlog-name instead of binlog-gtid"
    mode = "ON_PERMISSIVE" if "anonymous" in lower else "OFF_PERMISSIVE"
    return f"SET GLOBAL gtid_mode = {mode} until these are relayed, or take a new snapshot and start after them"
