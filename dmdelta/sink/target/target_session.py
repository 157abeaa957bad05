"""The session of one thread on the target: it outlives failures of the target, and another thread can end it."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pymysql

from dmdelta.errors import TargetUnavailable
from dmdelta.logging import get_logger
from dmdelta.model.retry import Retry
from dmdelta.sink.target.connection import TARGET_RETRY, TargetServer, connect, shut_down, translated

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)
Result = TypeVar("Result")
_DRIVER_ERRORS = (pymysql.err.MySQLError, OSError)


@dataclass(slots=True)
class TargetSession:
    """Connected when it is first used, and again after a failure.

    Attributes:
        retry: how often, and with which delays, an attempt that fails transiently is repeated.
        stopping: while it is set, none is repeated.
    """

    server: TargetServer
    autocommit: bool = False
    retry: Retry = TARGET_RETRY
    stopping: threading.Event = field(default_factory=threading.Event)
    _connection: "Connection[Any] | None" = None
    _is_cut_off: bool = False

    def attempt(self, act: Callable[[int], Result], what: str | None = None, *, quotes_rows: bool = False) -> Result:
        """Do something on the target. After a transient failure it is repeated, with back-off.

        A failed attempt ends the connection, and thereby its transaction.

        Args:
            act: called with the number of failed attempts; it uses `connection`.
            what: where an error happened; None: the server.
            quotes_rows: as for `translated`.

        Raises:
            TargetUnavailable: it failed transiently, and is not repeated any more.
            SinkError: the target refuses. And what else `act` raises.
        """
        failures = 0
        while True:
            try:
                return self._once(partial(act, failures), what or str(self.server), quotes_rows=quotes_rows)
            except TargetUnavailable as error:
                failures += 1
                if not self._repeats(failures, error):
                    raise

    def connection(self) -> "Connection[Any]":
        """The open connection.

        Raises:
            TargetUnavailable: the target does not answer, or another thread has ended the session. SinkError: it
                refuses the connection.
        """
        if self._connection is None and not self._is_cut_off:
            self._connection = connect(self.server, autocommit=self.autocommit)
        if self._connection is None or self._is_cut_off:  # it may also have happened during `connect`
            self.close()
            raise TargetUnavailable(
                f"the run has ended its sessions on {self.server}", hint="the next run continues at the checkpoint"
            )
        return self._connection

    def close(self) -> None:
        """Close the connection, if it is open; the next use opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*_DRIVER_ERRORS):
                connection.close()

    def cut_off(self) -> None:
        """End the session while its thread uses it: the target rolls back, and nothing more is sent to it."""
        self._is_cut_off = True
        self.stopping.set()
        shut_down(self._connection)

    def _once(self, act: Callable[[], Result], what: str, *, quotes_rows: bool) -> Result:
        try:
            return act()
        except BaseException as error:
            self.close()
            if isinstance(error, _DRIVER_ERRORS):
                raise translated(error, what, quotes_rows=quotes_rows) from error
            raise

    def _repeats(self, failures: int, error: TargetUnavailable) -> bool:
        """Wait before the next attempt; False if there is none."""
        if failures >= self.retry.attempts or self._is_cut_off or self.stopping.is_set():
            return False
        delay, name = self.retry.delay(failures), threading.current_thread().name
        log.warning("attempt failed, retrying", session=name, code=error.context.get("code"), in_s=round(delay, 2))
        return not self.stopping.wait(delay)
