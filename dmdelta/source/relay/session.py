"""One connection of a relay to a server: decide where to resume, then stream until the stream breaks or ends."""

import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dmdelta.binlog.events.header import EventType
from dmdelta.errors import PositionLost, SourceError, SourceUnavailable
from dmdelta.logging import get_logger
from dmdelta.model.gtid import GtidSet, joined, parse_gtid_set
from dmdelta.model.position import seq_of
from dmdelta.model.segment import FIRST_OFFSET, epoch_folder
from dmdelta.segments import EpochBegin, begin_epoch
from dmdelta.source.connection import START_OVER, open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.dump import (
    HEARTBEATS,
    LARGEST_OFFSET,
    DumpRequest,
    Replica,
    heartbeat_offset,
    is_artificial,
    named_file,
    open_dump,
    probe_file,
)
from dmdelta.source.relay.event_stream import Piece, WirePieces
from dmdelta.source.relay.gtid_lookup import locate_after
from dmdelta.source.relay.reconnect import Continue, Lost, NewEpoch, RelayState, plan_connect, unexecuted
from dmdelta.source.relay.relay_dir import created_at, load_state, with_gtids
from dmdelta.source.relay.relay_task import RelayTask, StartAfter, StartEdge, StatusFile, first_start
from dmdelta.source.relay.segmenter import Cutter
from dmdelta.source.server import (
    ServerIdentity,
    ServerLog,
    ServerPosition,
    log_end,
    server_identity,
    server_log,
    server_position,
)
from dmdelta.source.server_end import ServerEnd

if TYPE_CHECKING:
    from pymysql.connections import Connection

log = get_logger(__name__)

STALLED_HEARTBEATS = 5
"""Number of consecutive heartbeats that announce bytes which never arrive, after which the relay reconnects."""
_GLANCE_SECONDS = 0.05
"""Seconds between two looks at the requests, when there is no pause in the stream."""

Flag = Callable[[], bool]
"""Whether the parent process requests something."""


@dataclass(frozen=True, slots=True)
class RelayRequests:
    """What the parent process requests of a relay.

    Attributes:
        stop: to stop at a transaction boundary.
        publish: to publish the transactions that it has at once; true once per request.
    """

    stop: Flag
    publish: Flag = lambda: False


@dataclass(frozen=True, slots=True)
class _Target:
    """Where to stream from.

    Attributes:
        fresh: the first position of an epoch.
        gtid_set: the set before it, with `sum_gtids` only the purged part; None: unknown.
        after: the place follows from `gtid_set`: the server may have logged transactions of the set after it.
        sum_gtids: read the file from its first event: to determine the set before `offset`, and to check the position
            before the epoch begins there.
    """

    epoch: int
    binlog_file: str
    offset: int
    gtid_set: GtidSet | None = None
    fresh: bool = False
    after: bool = False
    sum_gtids: bool = False


class ServerSession:
    """Relays one server; `run` is called again after each lost connection.

    Attributes:
        progressed: bytes were published since the last `run` began.
    """

    def __init__(self, task: RelayTask, endpoint: Endpoint, requests: RelayRequests, status: StatusFile) -> None:
        self._task = task
        self._endpoint = endpoint
        self._requests = requests
        self._status = status
        self._replica = Replica.random(endpoint.server_id)
        self._end: tuple[str, ServerPosition] | None = None
        """(server, its position) at which a relay with `until_caught_up` ends."""
        self._server_end: ServerEnd | None = None
        self.progressed = False

    def run(self) -> bool:
        """Stream until stopped or caught up; True for the latter.

        Raises:
            SourceUnavailable: the connection was lost: call again.
            PositionLost, CorruptBinlog, SourceError: retrying does not help.
        """
        self.progressed = False
        self._status.update(state="connecting")
        with closing(open_connection(self._endpoint)) as control:
            server = self._identified(control)
            if self._end is None or self._end[0] != server.uuid:
                self._end = (server.uuid, server_position(control, server))
            target = self._target(control, server)
            now = log_end(control, server)
        if target.fresh and not target.sum_gtids:
            self._begin(server, target, seq_of(*now))
        self._status.update(
            epoch=target.epoch,
            binlog_file=target.binlog_file,
            offset=target.offset,
            server_file=now[0],
            server_offset=now[1],
            flavor=server.flavor,
        )
        if self._caught_up(target.binlog_file, target.offset):
            return True
        cutter = self._cutter(server, target)
        request = self._request(server, target.binlog_file, cutter.offset)
        log.info(
            "relay connected", source=str(self._endpoint), epoch=target.epoch, file=target.binlog_file, at=target.offset
        )
        try:
            with ServerEnd(self._endpoint, server, now) as self._server_end, open_dump(request) as pieces:
                return self._stream(pieces, cutter, server, target)
        finally:
            cutter.close()
            self._report(cutter)

    def _identified(self, control: "Connection[Any]") -> ServerIdentity:
        server = server_identity(control)
        wanted = self._endpoint.flavor
        if wanted is not None and wanted != server.flavor:
            raise SourceError(
                f"{self._endpoint} is a {server.flavor} server, not {wanted}", hint="correct flavor in the spec"
            )
        return server

    def _request(self, server: ServerIdentity, binlog_file: str, offset: int = FIRST_OFFSET) -> DumpRequest:
        return DumpRequest(self._endpoint, server, self._replica, binlog_file, offset)

    def _locate(self, server: ServerIdentity, after: GtidSet) -> tuple[str, int]:
        return locate_after(replace(self._request(server, ""), after=after))

    def _target(self, control: "Connection[Any]", server: ServerIdentity) -> _Target:
        state = load_state(self._task.folder, self._task.source_id)
        if state is not None and state.epoch < self._task.epoch:
            state = None  # the task was reset since then
        held = server_log(control, server)
        return self._first_target(control, server, held) if state is None else self._next_target(state, server, held)

    def _first_target(self, control: "Connection[Any]", server: ServerIdentity, held: ServerLog) -> _Target:
        start = self._task.start
        if isinstance(start, StartAfter):
            after = parse_gtid_set(start.gtid_set, server.flavor)
            return _Target(start.epoch, *self._locate(server, after), gtid_set=after, fresh=True, after=True)
        if start is StartEdge.CURRENT:
            here = server_position(control, server)
            return _Target(1, here.binlog_file, here.offset, here.gtid_set, fresh=True)
        start = first_start(start, held.files, str(self._endpoint))
        at_begin = start.offset == FIRST_OFFSET
        sum_gtids = not at_begin and held.executed is not None
        gtid_set = held.purged if sum_gtids or start.binlog_file == next(iter(held.files)) else None
        return _Target(start.epoch, start.binlog_file, start.offset, gtid_set, fresh=True, sum_gtids=sum_gtids)

    def _next_target(self, state: RelayState, server: ServerIdentity, held: ServerLog) -> _Target:
        created = None
        if state.server_uuid == server.uuid and state.binlog_file in held.files:
            created = created_at(probe_file(self._request(server, state.binlog_file)))
        plan = plan_connect(state, held, created)
        if not isinstance(plan, Continue):
            # Reading all newest segments takes time, so do it only where the files alone do not decide.
            state = with_gtids(state, self._task.folder, self._task.source_id, self._task.known)
            plan = plan_connect(state, held, created)
        if isinstance(plan, Lost):
            raise PositionLost(
                f"{self._endpoint} cannot resume at {state.binlog_file}:{state.offset}: {plan.reason}",
                hint=START_OVER,
                missing=plan.missing or "unknown",
            )
        if isinstance(plan, NewEpoch):
            place = self._locate(server, plan.after)
            log.warning(
                "source continues in another log", epoch=plan.epoch, server=server.uuid, file=place[0], at=place[1]
            )
            return _Target(plan.epoch, *place, gtid_set=plan.after, fresh=True, after=True)
        return _Target(state.epoch, plan.binlog_file, plan.offset)

    def _begin(self, server: ServerIdentity, target: _Target, end: int | None = None) -> None:
        """Record how the epoch begins: from now on the relay folder determines the position.

        Args:
            end: where the server's log ends; it has everything of the set before. None: the set has nothing after
                the position.
        """
        gtid_set = None if target.gtid_set is None else str(target.gtid_set)
        begin_epoch(
            self._task.folder,
            EpochBegin(
                server.uuid,
                target.epoch,
                server.flavor,
                target.binlog_file,
                target.offset,
                gtid_set,
                skip_until=end if target.after else None,
            ),
        )

    def _cutter(self, server: ServerIdentity, target: _Target) -> Cutter:
        folder = self._task.folder / epoch_folder(server.uuid, target.epoch)
        if target.offset == FIRST_OFFSET:
            return Cutter(folder, target.binlog_file, FIRST_OFFSET, b"")
        if target.sum_gtids or target.offset > LARGEST_OFFSET:
            return Cutter(folder, target.binlog_file, FIRST_OFFSET, b"", skip_to=target.offset)
        description = probe_file(self._request(server, target.binlog_file))
        return Cutter(folder, target.binlog_file, target.offset, description)

    def _stream(self, pieces: WirePieces, cutter: Cutter, server: ServerIdentity, target: _Target) -> bool:
        self._status.update(state="streaming")
        stalled, glance = 0, 0.0
        summing = target.sum_gtids
        # Cheap comparisons per event; only beyond it does the relay check whether the end is reached.
        goal = self._end[1].offset if self._task.until_caught_up and self._end else sys.maxsize
        for piece in pieces:
            if piece is not None:
                if is_artificial(piece.header, cutter.offset):
                    stalled = self._artificial(piece, cutter, stalled)
                else:
                    cutter.take(piece)
                    stalled = 0
                    if summing and not cutter.skipping:  # before anything is written
                        self._begin_summed(server, target, cutter.gtids)
                        summing = False
                if cutter.boundary < goal and time.monotonic() < glance:
                    continue
            glance = time.monotonic() + _GLANCE_SECONDS
            cutter.tick(at_once=self._requests.publish())
            self._report(cutter)
            if self._requests.stop():
                return False
            if self._caught_up(cutter.binlog_file, cutter.boundary):
                return True
        return False

    def _begin_summed(self, server: ServerIdentity, target: _Target, logged: GtidSet | None) -> None:
        """Record how an epoch begins after `logged`, which was read from the server's file; None: unknown.

        Raises:
            PositionLost: what has landed does not lie before the position at which a lost relay folder restarts.
        """
        if logged is None:
            self._begin(server, replace(target, gtid_set=None))
            return
        known, purged = self._task.known, target.gtid_set
        lacking = unexecuted(parse_gtid_set(known.gtid_set, server.flavor), logged, purged) if known else ""
        if known and lacking:
            raise PositionLost(
                f"{self._endpoint} has a different history at {known.position}",
                hint="restore the relay folder, or take a new snapshot",
                missing=lacking,
            )
        self._begin(server, replace(target, gtid_set=joined(purged, logged)))

    def _artificial(self, piece: Piece, cutter: Cutter, stalled: int) -> int:
        """Handle an artificial event; returns the number of consecutive heartbeats that announced missing bytes."""
        kind = piece.header[1]
        if kind == EventType.ROTATE:
            name = named_file(bytes(piece.data))
            if name != cutter.binlog_file:
                cutter.next_file(name)
        elif kind in HEARTBEATS:
            ahead = (heartbeat_offset(bytes(piece.data)) - cutter.offset) % (LARGEST_OFFSET + 1)
            behind_end = self._task.until_caught_up and not self._caught_up(cutter.binlog_file, cutter.offset)
            stalled = stalled + 1 if ahead or behind_end else 0
            if stalled >= STALLED_HEARTBEATS:
                raise SourceUnavailable(
                    f"{self._endpoint} announces more events but sends none",
                    hint="the relay reconnects automatically",
                    at=f"{cutter.binlog_file}:{cutter.offset}",
                )
        return stalled

    def _caught_up(self, binlog_file: str, offset: int) -> bool:
        if not self._task.until_caught_up or self._end is None:
            return False
        end = self._end[1]
        return seq_of(binlog_file, offset) >= seq_of(end.binlog_file, end.offset)

    def _report(self, cutter: Cutter) -> None:
        binlog_file, offset = cutter.on_disk
        if (binlog_file, offset) != (self._status.status.binlog_file, self._status.status.offset):
            self.progressed = True
        self._status.update(binlog_file=binlog_file, offset=offset)
        if self._server_end is not None:
            self._status.update(server_file=self._server_end.place[0], server_offset=self._server_end.place[1])
