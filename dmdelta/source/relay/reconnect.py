"""Decides how a relay resumes: a pure function of its own state and the server's."""

from dataclasses import dataclass

from dmdelta.model.gtid import GtidSet, joined, missing_from
from dmdelta.model.position import file_number
from dmdelta.model.segment import FIRST_OFFSET
from dmdelta.source.server import ServerLog


@dataclass(frozen=True, slots=True)
class RelayState:
    """The state of a relay.

    Attributes:
        server_uuid: of the server from which the newest epoch was read.
        offset: in `binlog_file`, a transaction boundary: everything before it is on disk.
        created: when the server created the file, in seconds since 1970, from its format description event; None:
            unknown.
        next_file: the next file, if `binlog_file` is read to its end.
        gtid_set: all transactions on disk and before; None if unknown or not determined.
    """

    server_uuid: str
    epoch: int
    binlog_file: str
    offset: int
    created: int | None
    next_file: str | None = None
    gtid_set: GtidSet | None = None


@dataclass(frozen=True, slots=True)
class Continue:
    """Resume in the same log."""

    binlog_file: str
    offset: int


@dataclass(frozen=True, slots=True)
class NewEpoch:
    """Resume in another log, which holds everything that follows `after`."""

    epoch: int
    after: GtidSet


@dataclass(frozen=True, slots=True)
class Lost:
    """The server does not have the next position."""

    reason: str
    missing: str = ""


ConnectPlan = Continue | NewEpoch | Lost


def plan_connect(relay: RelayState, server: ServerLog, created: int | None) -> ConnectPlan:
    """Decide how to resume.

    Args:
        created: when the server created the file `relay.binlog_file`; None if it does not have the file.
    """
    obstacle = _obstacle(relay, server, created)
    if obstacle is None:
        return Continue(relay.binlog_file, relay.offset)
    if (
        relay.server_uuid == server.uuid
        and relay.binlog_file not in server.files
        and relay.next_file is not None
        and next(iter(server.files)) == relay.next_file
    ):
        return Continue(relay.next_file, FIRST_OFFSET)
    if relay.server_uuid == server.uuid and _started_over(relay, server):
        # After a reset the same server reuses transaction numbers: its GTIDs prove nothing.
        return Lost(f"{obstacle}: its binlog was reset")
    if not relay.gtid_set or server.executed is None or server.purged is None:
        return Lost(f"{obstacle}, and there are no GTIDs to locate the position")
    unknown = missing_from(relay.gtid_set, server.executed)
    if unknown:
        return Lost(f"{obstacle}, and the server never executed some relayed transactions", unknown)
    purged = missing_from(server.purged, relay.gtid_set)
    if purged:
        return Lost(f"{obstacle}, and the server has purged transactions that are not relayed", purged)
    return NewEpoch(relay.epoch + 1, relay.gtid_set)


def unexecuted(known: GtidSet, logged: GtidSet, purged: GtidSet | None) -> str:
    """The landed transactions that a server did not execute before a position, as text; empty if none.

    A MySQL server's log and its PREVIOUS_GTIDS events lack what `SET GLOBAL gtid_purged` (a restored dump) and clones
    have added to the server's set. Such transactions count only if the whole sets are equal: a server that was restored
    from a newer backup has purged everything that has landed, and transactions that have not.

    Args:
        known: what has landed.
        logged: what the server has logged before the position.
        purged: its `gtid_purged`.
    """
    lacking = missing_from(known, logged)
    executed = joined(purged, logged)
    is_equal = not missing_from(known, executed) and not missing_from(executed, known)
    return "" if is_equal else lacking


def _obstacle(relay: RelayState, server: ServerLog, created: int | None) -> str | None:
    """Why the server's files do not continue the relay log; None if they do."""
    name = relay.binlog_file
    if relay.server_uuid != server.uuid:
        return f"the server is {server.uuid}, the relay log is from {relay.server_uuid}"
    if name not in server.files:
        return f"the server no longer has {name}"
    if server.files[name] < relay.offset:
        return f"the server's {name} has {server.files[name]} bytes, the relay log {relay.offset}"
    if relay.created is not None and created != relay.created:
        return f"the server's {name} is not the file that was relayed"
    if (
        relay.gtid_set is not None
        and server.executed is not None
        and (unknown := missing_from(relay.gtid_set, server.executed))
    ):
        return f"the server does not know {unknown}"
    return None


def _started_over(relay: RelayState, server: ServerLog) -> bool:
    """Whether the server has reset its log, rather than only purged our file."""
    return relay.binlog_file in server.files or file_number(next(iter(server.files))) < file_number(relay.binlog_file)
