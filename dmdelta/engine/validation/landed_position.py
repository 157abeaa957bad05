"""Waits until bronze reaches the source's position."""

import time

from dmdelta.bronze.progress import newest_landed
from dmdelta.engine.task.source import TaskSource
from dmdelta.errors import NotLanded
from dmdelta.model.position import Position
from dmdelta.segments import EpochBegin
from dmdelta.source.relay.relay_dir import newest_begin
from dmdelta.source.server import ServerPosition

POLL_SECONDS = 1.0


def await_landed(source: TaskSource, at: ServerPosition, wait: float) -> Position:
    """Wait until bronze has everything before a server's position. Returns that position.

    Args:
        wait: seconds.

    Raises:
        NotLanded: bronze does not reach it in time, or has the log of another server.
        LakehouseError: bronze cannot be read.
    """
    deadline = time.monotonic() + wait
    while True:
        landed = newest_landed(source.task.spark, source.landing)
        if landed is None:
            raise NotLanded(f"no data of {source.landing.source_id} has landed", hint="run the task first")
        position = plan_position(at, landed.end, newest_begin(source.relay_folder))
        if position is not None and landed.end >= position:
            return position
        if time.monotonic() > deadline:
            raise _not_landed(source, at, position, landed.end)
        time.sleep(POLL_SECONDS)


def plan_position(at: ServerPosition, landed: Position, relayed: EpochBegin | None) -> Position | None:
    """A server's position in the log that the task follows; None if that is the log of another server.

    Args:
        landed: the end of bronze.
        relayed: how the relay's newest epoch began, if the relay's folder is on this machine.
    """
    if relayed is None or relayed.epoch < landed.epoch:
        return Position(landed.epoch, at.binlog_file, at.offset)  # the server of the newest epoch is unknown
    if relayed.server_uuid != at.server_uuid:
        return None
    return Position(relayed.epoch, at.binlog_file, at.offset)


def _not_landed(source: TaskSource, at: ServerPosition, position: Position | None, landed: Position) -> NotLanded:
    if position is None:
        return NotLanded(
            f"the address of {source.landing.source_id} leads to the server {at.server_uuid}, "
            "whose log the task does not follow yet",
            hint="restart the task, so that its relay connects to that server, then run the command again",
        )
    return NotLanded(
        f"the source is at {position}, bronze ends at {landed}",
        hint="run the task (`dmdelta run SPEC --until-caught-up`), then compare",
    )
