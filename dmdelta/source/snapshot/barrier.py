"""A barrier that opens one consistent snapshot for several readers under a brief global read lock.

Readers run in separate processes, so they coordinate through user-level locks of the server (GET_LOCK): each takes a
lock when it is ready; the leader locks all tables and signals that; each opens its snapshot and takes another lock; the
leader unlocks the tables. A lock is released when its holder's connection ends, however it ends.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.errors import SourceError, SourceUnavailable
from dmdelta.source.connection import explained, query
from dmdelta.source.server import ServerPosition, server_position

if TYPE_CHECKING:
    from pymysql.connections import Connection

READY_SECONDS = 90.0
"""How long the first readers wait for the last one: Spark may have to start their processes first."""
LOCKED_SECONDS = 10.0
"""How long all tables may stay locked until every reader has its snapshot."""
LOCK_WAIT_SECONDS = 30
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class SnapshotBarrier:
    """A group of readers that share a snapshot; `key`, of at most 32 characters, identifies it."""

    key: str
    readers: int

    def lock(self, what: str, number: int = 0) -> str:
        """A lock name; MySQL allows at most 64 characters."""
        return f"dmdelta-{self.key}-{what}-{number}"


def call(connection: "Connection[Any]", meeting: SnapshotBarrier) -> None:
    """Become the leader: readers that arrive after this call wait."""
    _take(connection, meeting.lock("lead"))


def lead(connection: "Connection[Any]", meeting: SnapshotBarrier, over: Callable[[], bool]) -> None:
    """Wait for the readers, lock all tables, wait until each has its snapshot, unlock. On failure the readers stop.

    Args:
        over: True once no more readers will arrive.

    Raises:
        SourceError: not all readers arrived in time, or the account may not lock tables (this requires RELOAD).
        SourceUnavailable: the connection is lost.
    """
    try:
        if not _all_hold(connection, meeting, "ready", READY_SECONDS, over):
            if over():
                return
            raise SourceError(
                f"not all {meeting.readers} readers arrived within {READY_SECONDS:.0f} s",
                hint="each reader takes a task slot of Spark: lower snapshot.readers, or free some slots",
            )
        _lock_all(connection)
        try:
            _take(connection, meeting.lock("go"))
            if not _all_hold(connection, meeting, "open", LOCKED_SECONDS, over):
                raise SourceError("the readers did not open their snapshot in time", hint="run again")
        finally:
            query(connection, "UNLOCK TABLES")
            _release(connection, meeting.lock("go"))
    except SourceError:
        with suppress(SourceUnavailable):  # a lost connection holds nothing
            _release(connection, meeting.lock("lead"))
        raise


def meet(connection: "Connection[Any]", meeting: SnapshotBarrier, number: int) -> ServerPosition:
    """Open the shared snapshot as reader `number`, starting at 0; returns the position of the snapshot.

    Raises:
        SourceUnavailable: the leader has gone, or the reader arrived too late.
    """
    _take(connection, meeting.lock("ready", number))
    go = meeting.lock("go")
    while not _is_held(connection, go):
        if not _is_held(connection, meeting.lock("lead")):
            raise _late()
        time.sleep(_POLL_SECONDS)
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    position = server_position(connection)
    if not _is_held(connection, go):
        raise _late()
    _take(connection, meeting.lock("open", number))
    while _is_held(connection, go):  # a fast reader must keep its locks until the leader has seen them
        time.sleep(_POLL_SECONDS)
    return position


def _lock_all(connection: "Connection[Any]") -> None:
    query(connection, f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS}")
    with explained(
        "all tables must be locked briefly",
        hint="GRANT RELOAD ON *.* to the account, or use consistency: none",
    ):
        query(connection, "FLUSH TABLES WITH READ LOCK")


def _late() -> SourceUnavailable:
    return SourceUnavailable("a reader missed the shared snapshot", hint="run again: none of it has landed")


def _take(connection: "Connection[Any]", name: str) -> None:
    if query(connection, "SELECT GET_LOCK(%s, 0)", (name,))[0][0] != 1:
        raise SourceUnavailable(f"the lock {name} is taken", hint="run again")


def _release(connection: "Connection[Any]", name: str) -> None:
    query(connection, "SELECT RELEASE_LOCK(%s)", (name,))


def _is_held(connection: "Connection[Any]", name: str) -> bool:
    return query(connection, "SELECT IS_USED_LOCK(%s)", (name,))[0][0] is not None


def _all_hold(
    connection: "Connection[Any]", meeting: SnapshotBarrier, what: str, seconds: float, over: Callable[[], bool]
) -> bool:
    deadline = time.monotonic() + seconds
    missing = set(range(meeting.readers))
    while missing and not over() and time.monotonic() < deadline:
        missing = {number for number in missing if not _is_held(connection, meeting.lock(what, number))}
        if missing:
            time.sleep(_POLL_SECONDS)
    return not missing
