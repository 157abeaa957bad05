"""Readers on one consistent snapshot: they meet under a global read lock that lasts for a moment.

Readers are in processes of their own, so they tell each other by user-level locks of the server (GET_LOCK): each takes
one when it is ready; the leader locks all tables and says so; each opens its snapshot and takes another one; the leader
unlocks. A lock ends with the connection of its holder, whatever becomes of it.
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
"""How long the first readers wait for the last one: Spark may have to start their processes."""
LOCKED_SECONDS = 10.0
"""How long all tables may stay locked until every reader has its snapshot."""
LOCK_WAIT_SECONDS = 30
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Meeting:
    """A number of readers that share a snapshot; `key`, of 32 characters at most, tells it from all others."""

    key: str
    readers: int

    def lock(self, what: str, number: int = 0) -> str:
        """A name of at most 64 characters, as MySQL wants it."""
        return f"dmdelta-{self.key}-{what}-{number}"


def call(connection: "Connection[Any]", meeting: Meeting) -> None:
    """Become the leader: readers that come from now on wait."""
    _take(connection, meeting.lock("lead"))


def lead(connection: "Connection[Any]", meeting: Meeting, over: Callable[[], bool]) -> None:
    """Wait for the readers, lock all tables, wait until each has its snapshot, unlock. If it fails, readers give up.

    Args:
        over: True once the readers will not come any more.

    Raises:
        SourceError: not all readers came in time, or the account may not lock (it needs RELOAD).
        SourceUnavailable: the connection is lost.
    """
    try:
        if not _all_hold(connection, meeting, "ready", READY_SECONDS, over):
            if over():
                return
            raise SourceError(
                f"not all {meeting.readers} readers came within {READY_SECONDS:.0f} s",
                hint="each takes a task slot of Spark: lower snapshot.readers, or free some slots",
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


def meet(connection: "Connection[Any]", meeting: Meeting, number: int) -> ServerPosition:
    """Open the shared snapshot as reader `number`, from 0 on; the position that it stands for.

    Raises:
        SourceUnavailable: the leader has gone, or the reader came too late.
    """
    query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
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
    while _is_held(connection, go):  # a quick reader must not be gone before the leader has seen it
        time.sleep(_POLL_SECONDS)
    return position


def _lock_all(connection: "Connection[Any]") -> None:
    query(connection, f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS}")
    with explained(
        "all tables must be locked for a moment",
        hint="GRANT RELOAD ON *.* to the account, or use consistency: none",
    ):
        query(connection, "FLUSH TABLES WITH READ LOCK")


def _late() -> SourceUnavailable:
    return SourceUnavailable("a reader missed the shared snapshot", hint="run again: nothing of it has landed")


def _take(connection: "Connection[Any]", name: str) -> None:
    if query(connection, "SELECT GET_LOCK(%s, 0)", (name,))[0][0] != 1:
        raise SourceUnavailable(f"the lock {name} is taken", hint="run again")


def _release(connection: "Connection[Any]", name: str) -> None:
    query(connection, "SELECT RELEASE_LOCK(%s)", (name,))


def _is_held(connection: "Connection[Any]", name: str) -> bool:
    return query(connection, "SELECT IS_USED_LOCK(%s)", (name,))[0][0] is not None


def _all_hold(
    connection: "Connection[Any]", meeting: Meeting, what: str, seconds: float, over: Callable[[], bool]
) -> bool:
    deadline = time.monotonic() + seconds
    missing = set(range(meeting.readers))
    while missing and not over() and time.monotonic() < deadline:
        missing = {number for number in missing if not _is_held(connection, meeting.lock(what, number))}
        if missing:
            time.sleep(_POLL_SECONDS)
    return not missing
