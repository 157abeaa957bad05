"""Named points at which a test injects a fault: DM's failpoints.

`DMDELTA_FAILPOINT=silver-before-commit:3` kills the process with SIGKILL when it passes that point for the third time;
`silver-before-commit=hang` and `=error:CommitConflict` inject other faults: see `Fault`. `DMDELTA_FAILPOINT=@FILE`
reads the same text from a file, once it exists: a test can inject a single fault into a running process. Without the
variable a point costs one dictionary look-up.
"""

import errno
import os
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from dmdelta.errors import all_errors

VARIABLE = "DMDELTA_FAILPOINT"
HANGS = ".hangs"
"""Suffix of the marker file next to FILE that exists while a point hangs: removing it resumes the process."""
_NAP_SECONDS = 0.05
_SETTING = re.compile(r"(?P<point>[a-z-]+)(:(?P<nth>\d+))?(=(?P<fault>[a-z]+)(:(?P<kind>\w+))?)?")
_passed: Counter[str] = Counter()


class CrashPoint(str, Enum):
    """Every place between two effects where a crash must neither lose nor repeat anything."""

    SNAPSHOT_CHUNK_LOW = "snapshot-chunk-low"
    SNAPSHOT_CHUNK_READ = "snapshot-chunk-read"
    SNAPSHOT_BETWEEN_BATCHES = "snapshot-between-batches"
    SNAPSHOT_END = "snapshot-end"
    RELAY_MID_TRANSACTION = "relay-mid-transaction"
    RELAY_ROTATED = "relay-rotated"
    RELAY_BEFORE_RENAME = "relay-before-rename"
    RELAY_AFTER_RENAME = "relay-after-rename"
    LAND_DECODED = "land-decoded"
    LAND_BEFORE_COMMIT = "land-before-commit"
    LAND_AFTER_COMMIT = "land-after-commit"
    MEMORY_EVICTED = "memory-evicted"
    SILVER_BEFORE_COMMIT = "silver-before-commit"
    SILVER_BETWEEN_COMMITS = "silver-between-commits"
    SILVER_AFTER_COMMIT = "silver-after-commit"
    SILVER_FROM_MEMORY = "silver-from-memory"
    SILVER_BEFORE_CHANGE = "silver-before-change"
    SILVER_AFTER_CHANGE = "silver-after-change"
    CHECKPOINT_MID_FLUSH = "checkpoint-mid-flush"
    MAINTENANCE_BEFORE_COMPACTION = "maintenance-before-compaction"
    MAINTENANCE_BEFORE_VACUUM = "maintenance-before-vacuum"
    MAINTENANCE_END = "maintenance-end"
    SINK_BEFORE_TAKEOVER = "sink-before-takeover"
    SINK_AFTER_TAKEOVER = "sink-after-takeover"
    SINK_BEFORE_CREATE = "sink-before-create"
    SINK_AFTER_CREATE = "sink-after-create"
    SINK_BEFORE_TRANSACTION = "sink-before-transaction"
    SINK_MID_TRANSACTION = "sink-mid-transaction"
    SINK_BEFORE_RECORD = "sink-before-record"
    SINK_BEFORE_COMMIT = "sink-before-commit"
    SINK_AFTER_COMMIT = "sink-after-commit"
    SINK_DRAINED = "sink-drained"
    SINK_BEFORE_FLUSH = "sink-before-flush"
    SINK_MID_FLUSH = "sink-mid-flush"
    SINK_AFTER_FLUSH = "sink-after-flush"
    SINK_BEFORE_STATEMENT = "sink-before-statement"
    SINK_AFTER_STATEMENT = "sink-after-statement"
    SINK_BETWEEN_ACTIONS = "sink-between-actions"
    SINK_RESYNCED = "sink-resynced"
    SINK_RELOAD_EMPTIED = "sink-reload-emptied"
    SINK_RELOAD_EXECUTED = "sink-reload-executed"


class Fault(str, Enum):
    """The fault to inject at a point."""

    KILL = "kill"
    """The process is killed with SIGKILL."""
    ERROR = "error"
    """`error:NAME` raises a dmdelta error by its class name, or an OSError by its errno's name (ENOSPC)."""
    HANG = "hang"
    """The process hangs until the marker file is removed."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """The fault to inject when `point` is passed for the `nth` time."""

    point: str
    nth: int
    fault: Fault
    kind: str

    @classmethod
    def parse(cls, text: str) -> "_Setting | None":
        match = _SETTING.fullmatch(text.strip())
        if match is None:
            return None
        return cls(match["point"], int(match["nth"] or 1), Fault(match["fault"] or "kill"), match["kind"] or "")


def reach(point: CrashPoint) -> None:
    """Pass `point`, or inject the fault that the environment variable configures.

    Raises:
        DmdeltaError, OSError: the configured error.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    armed = Path(text[1:]) if text.startswith("@") else None
    setting = _Setting.parse(_read(armed) if armed else text)
    if setting is None or setting.point != point.value:
        return
    _passed[setting.point] += 1
    if _passed[setting.point] < setting.nth or (armed is None and _passed[setting.point] > setting.nth):
        return
    if armed is not None:
        try:
            armed.unlink()  # the process that takes over must not hit it again
        except FileNotFoundError:
            return  # another process has passed it at the same time, and injects the fault
        _passed.clear()
    _meet(setting, armed)


def _meet(setting: _Setting, armed: Path | None) -> None:
    if setting.fault is Fault.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if setting.fault is Fault.ERROR:
        raise _error(setting)
    assert armed is not None, "a hang is ended through a file"
    hangs = armed.with_name(armed.name + HANGS)
    hangs.touch()
    while hangs.exists():
        time.sleep(_NAP_SECONDS)


def _error(setting: _Setting) -> Exception:
    kind = all_errors().get(setting.kind)
    if kind is not None:
        return kind(f"injected failure at {setting.point}", hint="none: a test injected it")
    number = int(getattr(errno, setting.kind))
    return OSError(number, f"{os.strerror(number)}, injected at {setting.point}")


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""
