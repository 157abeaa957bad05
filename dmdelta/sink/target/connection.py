"""Sessions on the target, and the mapping of its errors."""

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.errors import SinkError, TargetUnavailable
from dmdelta.model.mysql_sql import text
from dmdelta.model.retry import Retry
from dmdelta.model.tls import CUT_OFF_HINT, NO_TLS_HINT, SSL_REQUIRED, Tls, driver_options, password_bytes, tls_trouble

if TYPE_CHECKING:
    from pymysql.connections import Connection

SQL_MODE = "STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""No value is truncated or rounded silently; zero and invalid dates are kept; backslashes escape."""
CHARSET = "utf8mb4"
MOST_WARNINGS = 65_535
"""How many warnings a server lists: the most that every server allows, more than the values in one statement."""
CONNECT_SECONDS = 5
ANSWER_SECONDS = 600
_TRANSPORT = frozenset({1040, 1053, 1077, 1158, 1159, 1160, 1161, 1203, 1317, 1927, 2002, 2003, 2005, 2006, 2013, 2014})
_AGAIN = frozenset({1205, 1213, 3572, 4031})
"""Lock wait timeout or deadlock: the transaction was, or will be, rolled back."""
_TIDB = frozenset({8002, 8005, 8022, 8028, 9001, 9002, 9003, 9004, 9005, 9007, 9011, 9012})
"""TiDB: write conflicts, a schema that changed meanwhile, regions and stores that do not respond."""
REFUSED = _AGAIN | {8028}
"""The server has not executed the statement."""
RETRYABLE = _TRANSPORT | _AGAIN | _TIDB
TARGET_RETRY = Retry(attempts=30, first=0.1, longest=10.0)
_TRUNCATED, _DEPRECATED = 1265, 1287
_BY_HAND = (
    "the target does not support the source's change: alter its table manually as far as possible, then run "
    "`dmdelta binlog skip`, or use other statements with `dmdelta binlog replace`"
)
_NOT_HELD = (
    "the target's column cannot store the source's value: give it the source's type, or skip the change with "
    "`dmdelta binlog skip`"
)
_NOT_ALLOWED = 1227
_NAMES_ONLY = frozenset({1044, 1048, 1054, 1142, 1146, 1364, 3819, 4025})
"""Errors whose messages quote only names."""
_QUOTING = frozenset(
    {1062, 1264, 1265, 1292, 1300, 1366, 1406, 1411, 1525, 1526, 1557, 1569, 1586, 1690, 1761, 1762, 1977, 3140, 3854}
)
"""Errors that may quote values of rows, also of a statement that has none, such as ADD UNIQUE or MODIFY."""
_NAME_BEHIND = re.compile(r" for (?:column|key) (?!.* for (?:column|key) )", re.DOTALL)
_VALUE_BEHIND = re.compile(r"(?<=value is )'.*", re.DOTALL)
_VALUES = re.compile(r"(?:key=|(?<= for value )|['\"{]).*", re.DOTALL)
_HINTS = {
    **dict.fromkeys((1064, 1115, 1235, 1273, 1846, 3106, 8200), _BY_HAND),
    1044: "grant the sink's account the privileges listed in docs/spec.md",
    1045: "correct user or password of the sink in the spec. An account that requires TLS or a client certificate is "
    "refused with the same error: set security.ssl-ca, ssl-cert, ssl-key",
    1048: "make the target's column nullable, as in the source",
    1062: "a row with this key already exists: compare the target with the source; `dmdelta binlog skip` skips the "
    "change, safe-mode: true replaces the row",
    1142: "grant the sink's account the privileges listed in docs/spec.md",
    1146: "the table was dropped on the target: create it again, or exclude it with the block-allow-list",
    1153: "raise max_allowed_packet on the target",
    **dict.fromkeys((1264, 1265, 1366), _NOT_HELD),
    1364: "give the target's own column a default, or make it nullable",
    SSL_REQUIRED: NO_TLS_HINT,
    3159: "the target requires TLS: set security.ssl-ca of the sink in the spec",
    **dict.fromkeys((1193, 1227, 1229, 1231, 1232, 1238), "correct `session` of the sink in the spec"),
    1406: "widen the target's column, or skip the change with `dmdelta binlog skip`",
}


@dataclass(frozen=True, slots=True)
class TargetServer:
    """Where the target is, and how to log in.

    Attributes:
        session: session variables that the spec sets, by name.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tidb: bool = False
    foreign_key_checks: bool = False
    tls: Tls | None = None
    session: tuple[tuple[str, int | str], ...] = ()

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def connect(server: TargetServer, *, autocommit: bool = True) -> "Connection[Any]":
    """Open a session.

    Raises:
        TargetUnavailable: the target does not answer.
        SinkError: it refuses the connection.
        ConfigError: a certificate cannot be read.
    """
    checks = int(server.foreign_key_checks)
    begin = f"SET time_zone = '+00:00', sql_mode = '{SQL_MODE}', foreign_key_checks = {checks}"
    begin += "".join(f", {name} = {_value(value)}" for name, value in server.session)
    try:
        connection = pymysql.connect(
            host=server.host,
            port=server.port,
            user=server.user,
            password=password_bytes(server.password),
            charset=CHARSET,
            autocommit=autocommit,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            write_timeout=ANSWER_SECONDS,
            init_command=begin,
            program_name="dmdelta",
            **driver_options(server.tls),
        )
        # Gap locks on rows that do not exist would only block the other workers.
        execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    except (pymysql.err.MySQLError, OSError, RuntimeError) as error:
        raise translated(error, str(server)) from error
    return connection


def shut_down(connection: "Connection[Any] | None") -> None:
    """End a session that another thread uses: the server rolls back, and the thread's next statement fails."""
    wire: Any = connection
    used = wire._sock if wire is not None else None  # noqa: SLF001 - `close` would send a command between the thread's
    if used is not None:
        with suppress(OSError):
            # Not SSLSocket's own: it drops TLS first, and the thread could send its next bytes in plain text.
            socket.socket.shutdown(used, socket.SHUT_RDWR)


def _value(value: int | str) -> str:
    return text(value) if isinstance(value, str) else str(int(value))


@contextmanager
def session(server: TargetServer) -> Iterator["Connection[Any]"]:
    """A session for one transaction: committed at the end of the `with` block, and always closed.

    Raises:
        TargetUnavailable: the target does not answer.
        SinkError: it refuses the connection or a statement.
    """
    connection = connect(server, autocommit=False)
    try:
        yield connection
        connection.commit()
    except (pymysql.err.MySQLError, OSError) as error:
        raise translated(error, str(server)) from error
    finally:
        connection.close()


def execute(connection: "Connection[Any]", sql: str, arguments: Sequence[Any] | None = None) -> int:
    """Run a statement; returns the number of rows that it changed.

    Raises:
        pymysql.err.MySQLError, OSError: the driver's error; the caller adds the context (`translated`).
    """
    with connection.cursor() as cursor:
        return int(cursor.execute(sql, tuple(arguments) if arguments is not None else None))


def execute_under_protest(connection: "Connection[Any]", sql: str, protests: int) -> None:
    """Execute what strict mode refuses: exactly `protests` values that are reported as truncated but are unchanged.

    Raises:
        SinkError: the server warns about anything else. And as `execute`.
    """
    _list_every_warning(connection)
    execute(connection, f"SET sql_mode = '{SQL_MODE.replace('STRICT_TRANS_TABLES,', '')}'")
    execute(connection, sql)
    warnings = ask(connection, "SHOW WARNINGS")
    ((count,),) = ask(connection, "SHOW COUNT(*) WARNINGS")
    execute(connection, f"SET sql_mode = '{SQL_MODE}'")
    others = [code for _, code, _ in warnings if code not in (_TRUNCATED, _DEPRECATED)]
    truncated = [message for _, code, message in warnings if code == _TRUNCATED]
    if count != len(warnings):
        raise SinkError(
            f"the target has {count} warnings, but lists only {len(warnings)}: it may change values",
            hint="lower `batch` of the sink, or grant its account SESSION_VARIABLES_ADMIN",
        )
    # TiDB reports a row twice if ON DUPLICATE KEY UPDATE assigns it.
    if others or protests not in (len(truncated), len(set(truncated))):
        raise SinkError("the target would change values", hint="compare the columns' types", codes=others[:5])


def _list_every_warning(connection: "Connection[Any]") -> None:
    """Raises as `execute`."""
    try:
        execute(connection, f"SET max_error_count = {MOST_WARNINGS}")
    except pymysql.err.MySQLError as error:
        # MySQL 8 allows this to administrators. For others it lists 1024 warnings.
        if code_of(error) != _NOT_ALLOWED:
            raise


def without_values(message: str) -> str:
    """A server's message without what it quotes before the name of a column or a key: `Duplicate entry '…' for key
    'PRIMARY'`. Without quotes are the value that no partition holds and TiDB's keys: `key={tableID=1, handle=7}`.
    TiDB also quotes a value behind the name: `Data truncated for column 'c', value is '…'`.
    """
    message = _VALUE_BEHIND.sub("…", message)
    behind = _NAME_BEHIND.search(message)
    end = behind.start() if behind is not None else len(message)
    return _VALUES.sub("…", message[:end]) + message[end:]


def ask(connection: "Connection[Any]", sql: str, arguments: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    """All rows of a query. Raises as `execute`."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(arguments) if arguments is not None else None)
        return list(cursor.fetchall())


def code_of(error: BaseException) -> int:
    """The number of a server's error, 0 for any other."""
    if not isinstance(error, pymysql.err.MySQLError) or not error.args:
        return 0
    try:
        return int(error.args[0])
    except ValueError:
        return 0


def is_retryable(error: BaseException) -> bool:
    """The same transaction may succeed later."""
    if tls_trouble(error) is not None:
        return False
    if isinstance(error, OSError) or (isinstance(error, pymysql.err.InterfaceError) and code_of(error) == 0):
        return True
    return code_of(error) in RETRYABLE


def translated(error: BaseException, what: str, *, quotes_rows: bool = False, **context: Any) -> SinkError:
    """The dmdelta error for a driver's error.

    Args:
        what: where it happened.
        quotes_rows: the statement has values of rows, which must not reach a log: whatever the server quotes is left
            out, unless it is certainly a name. Otherwise, only what `_QUOTING` may quote of rows.
        context: facts such as the position.
    """
    code = code_of(error)
    message = str(error.args[1]) if len(error.args) > 1 else str(error)
    if code in _QUOTING | _TIDB or (quotes_rows and code not in _NAMES_ONLY):
        message = without_values(message)
    trouble = tls_trouble(error)
    if trouble is not None:
        return SinkError(f"no TLS connection to {what}: {trouble[0]}", hint=trouble[1], **context)
    if isinstance(error, RuntimeError):  # PyMySQL: the package for the account's authentication plugin is missing
        return SinkError(f"cannot log in to {what}: {message}", hint="install the named package", **context)
    if is_retryable(error):
        hint = "the sink retries automatically; if the error persists, check host, port and the server"
        hint += CUT_OFF_HINT if "SSL" in message else ""
        return TargetUnavailable(f"{what} does not answer: {message}", hint=hint, code=code, **context)
    hint = _HINTS.get(code, "see the server's message; correct the target or the spec")
    return SinkError(f"{what} refuses: {message}", hint=hint, code=code, **context)
