"""Relays from a test server into a folder, and checks of the result."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dmdelta.model.retry import Retry
from dmdelta.segments import list_segments
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.__main__ import run_relay
from dmdelta.source.relay.relay_task import RelayTask
from dmdelta.source.relay.session import RelayRequests
from tests.support.servers import Server

QUICK = Retry(attempts=4, first=0.05, longest=0.3)


def endpoint_of(server: Server, **changes: Any) -> Endpoint:
    """dmdelta's account on a test server."""
    settings = {"host": server.host, "port": server.port, "user": server.user, "password": server.password, **changes}
    return Endpoint(**settings)


def relay_task(server: Server, folder: Path, **changes: Any) -> RelayTask:
    """A relay task that catches up and ends."""
    settings = {"endpoint": endpoint_of(server), "until_caught_up": True, "retry": QUICK, **changes}
    return RelayTask("src", str(folder), **settings)


def catch_up(task: RelayTask) -> None:
    run_relay(task, RelayRequests(lambda: False))


def relayed_bytes(task: RelayTask, binlog_file: str, epoch: int | None = None) -> bytes:
    """The bytes of the server's file from the first relayed byte on, joined from segments."""
    return b"".join(
        Path(segment.path).read_bytes()[-segment.size :]
        for segment in list_segments(task.folder, "src")
        if segment.binlog_file == binlog_file and epoch in (None, segment.epoch)
    )


def files_differ(task: RelayTask, server: Server) -> list[str]:
    """The closed binlog files of the server that the relay did not copy byte by byte."""
    return [
        place.name
        for place in server.binlog_files()[:-1]
        if b"\xfebin" + relayed_bytes(task, place.name) != place.read_bytes()
    ]


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for a condition; raises AssertionError if it is not true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)


def purged_to_the_newest(server: Server) -> bool:
    """Purge, and return whether it succeeded: a server refuses while a dump that has just ended still uses a file."""
    server.execute(f"PURGE BINARY LOGS TO '{server.position()[0]}'")
    return len(server.binlog_files()) == 1
