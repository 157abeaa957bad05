"""A relay's task and its status: records that are passed between processes as JSON."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from dmdelta.errors import DmdeltaError, PositionLost, to_wire
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.model.retry import Retry
from dmdelta.model.segment import FIRST_OFFSET
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.purge import Known

STATUS_SECONDS = 1.0
RELAY_RETRY = Retry(attempts=15)
"""About five minutes."""
_STATUS = "status.json"


class StartEdge(str, Enum):
    """Where a first start without a position begins."""

    OLDEST = "oldest"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class StartAt:
    """A first start at a file and offset (a transaction boundary). `epoch` is above 1 after a lost relay folder."""

    binlog_file: str
    offset: int = FIRST_OFFSET
    epoch: int = 1

    @property
    def place(self) -> tuple[str, int]:
        return (self.binlog_file, self.offset)


@dataclass(frozen=True, slots=True)
class StartAfter:
    """A first start after everything in a GTID set (text)."""

    gtid_set: str
    epoch: int = 1


Start = StartEdge | StartAt | StartAfter


def first_start(start: StartAt | StartEdge, files: Mapping[str, int], where: str) -> StartAt:
    """The start as a position in one of a source's `files` (sizes by name, oldest first); the oldest by default.

    Raises:
        PositionLost: the files do not contain it.
    """
    begin = start if isinstance(start, StartAt) else StartAt(next(iter(files)))
    if files.get(begin.binlog_file, 0) < begin.offset:
        raise PositionLost(
            f"{where} does not have {begin.binlog_file}:{begin.offset}",
            hint=f"its binlog starts with {next(iter(files))}: correct `meta`, or take a new snapshot",
        )
    return begin


@dataclass(frozen=True, slots=True)
class RelayTask:
    """One source to relay: a server (`endpoint`) or a folder of whole binlog files (`binlog_dir`).

    Attributes:
        relay_dir: the folder that holds one folder per source.
        start: used while the source's relay folder is empty; afterwards the folder determines the position.
        until_caught_up: end once everything is on disk that the source had when the relay started.
        known: what has landed, for a folder whose older segments are purged.
        retry: how long an unreachable server is retried before the relay fails; reset after progress.
    """

    source_id: str
    relay_dir: str
    endpoint: Endpoint | None = None
    binlog_dir: str | None = None
    start: Start = StartEdge.OLDEST
    until_caught_up: bool = False
    known: Known | None = None
    retry: Retry = RELAY_RETRY

    @property
    def folder(self) -> Path:
        """The source's own folder: the one that `list_segments` expects."""
        return Path(self.relay_dir) / self.source_id

    @property
    def epoch(self) -> int:
        """The epoch that `start` begins; a folder with only older epochs starts over."""
        return 1 if isinstance(self.start, StartEdge) else self.start.epoch

    def to_json(self) -> str:
        """Includes the password: for a pipe."""
        return json.dumps({**asdict(self), "start": {"kind": type(self.start).__name__, "value": _plain(self.start)}})

    @classmethod
    def from_json(cls, text: str) -> "RelayTask":
        fields: dict[str, Any] = json.loads(text)
        known = fields["known"]
        start = fields["start"]
        kinds: dict[str, type[StartAt | StartAfter]] = {"StartAt": StartAt, "StartAfter": StartAfter}
        kind = kinds.get(start["kind"])
        fields["start"] = kind(**start["value"]) if kind else StartEdge(start["value"])
        fields["endpoint"] = Endpoint.from_dict(fields["endpoint"]) if fields["endpoint"] else None
        fields["known"] = Known.from_dict(known) if known else None
        return cls(**{**fields, "retry": Retry(**fields["retry"])})


def _plain(start: Start) -> Any:
    return start.value if isinstance(start, StartEdge) else asdict(start)


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """What a relay reports about itself, once a second, in `status.json` of its folder.

    Attributes:
        state: `starting`, `connecting`, `streaming`, `stopped`, `caught up` or `failed`.
        binlog_file, offset: up to where segments are on disk.
        server_file, server_offset: the server's end, looked up when the relay connects and every few seconds since.
        retries: consecutive failed attempts.
        flavor: of the server, once known.
        error: the failure in the form of `errors.to_wire`.
        at: when this was written, seconds since 1970.
    """

    pid: int
    state: str = "starting"
    epoch: int = 0
    binlog_file: str = ""
    offset: int = 0
    server_file: str = ""
    server_offset: int = 0
    retries: int = 0
    flavor: Flavor | None = None
    error: str | None = None
    at: float = 0.0

    @property
    def server_end(self) -> Position | None:
        """Up to where the server is known to be: its end when it was last looked up, or what it has sent since."""
        known = ((self.server_file, self.server_offset), (self.binlog_file, self.offset))
        return max((Position(self.epoch, file, offset) for file, offset in known if file), default=None)


def read_status(folder: Path) -> RelayStatus | None:
    """The latest status of the relay that runs or ran in a source's folder; None if there never was one."""
    try:
        return RelayStatus(**json.loads((folder / _STATUS).read_text()))
    except FileNotFoundError:
        return None


class StatusFile:
    """Writes the status, at most once a second unless something other than a position changes."""

    def __init__(self, folder: Path) -> None:
        self._place = folder / _STATUS
        self._written = 0.0
        self.status = RelayStatus(pid=os.getpid())

    def update(self, **changes: Any) -> None:
        before, self.status = self.status, replace(self.status, **changes, at=time.time())
        moved = {"state", "retries", "error", "epoch", "flavor"} & changes.keys()
        news = any(getattr(before, name) != getattr(self.status, name) for name in moved)
        if news or time.monotonic() - self._written >= STATUS_SECONDS:
            self.write()

    def fail(self, error: DmdeltaError) -> None:
        self.update(state="failed", error=to_wire(error))

    def write(self) -> None:
        self._written = time.monotonic()
        fresh = self._place.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self.status)))
        fresh.replace(self._place)
