"""Named points at which a test has something go wrong: DM's failpoints.

`DMDELTA_FAILPOINT=silver-before-commit:3` ends the process with SIGKILL at the third passing of that point,
`silver-before-commit=hang` and `=error:CommitConflict` do something else there: see `Fault`.
`DMDELTA_FAILPOINT=@FILE` takes the same text from a file, as soon as there is one: a running process meets the fault
once, when the test wants it. Without the variable a point costs one dictionary look-up.
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
"""Ends the name of the file beside FILE that is there while a point hangs: whoever removes it lets it go on."""
_NAP_SECONDS = 0.05
_SETTING = re.compile(r"(?P<point>[a-z-]+)(:(?P<nth>\d+))?(=(?P<fault>[a-z]+)(:(?P<kind>\w+))?)?")
_passed: Counter[str] = Counter()


class CrashPoint(str, Enum):
    """Every place between two effects where a crash must lose nothing and repeat nothing."""

    SNAPSHOT_CHUNK_LOW = "snapshot-chunk-low"
    SNAPSHOT_CHUNK_READ = "snapshot-chunk-read"
    SNAPSHOT_BETWEEN_BATCHES = "snapshot-between-batches"
    SNAPSHOT_END = "snapshot-end"
    RELAY_MID_TRANSACTION = "relay-mid-transaction"
    RELAY_ROTATED = "relay-rotated"
    RELAY_BEFORE_RENAME = "relay-before-rename"
    RELAY_AFTER_RENAME = "relay-after-rename"
    LAND_BEFORE_COMMIT = "land-before-commit"
    LAND_AFTER_COMMIT = "land-after-commit"
    SILVER_BEFORE_COMMIT = "silver-before-commit"
    SILVER_BETWEEN_COMMITS = "silver-between-commits"
    SILVER_AFTER_COMMIT = "silver-after-commit"
    SILVER_BEFORE_CHANGE = "silver-before-change"
    SILVER_AFTER_CHANGE = "silver-after-change"
    CHECKPOINT_MID_FLUSH = "checkpoint-mid-flush"
    CARE_BEFORE_COMPACTION = "care-before-compaction"
    CARE_BEFORE_VACUUM = "care-before-vacuum"
    CARE_END = "care-end"
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


class Fault(str, Enum):
    """What goes wrong at a point."""

    KILL = "kill"
    """The process dies of SIGKILL."""
    ERROR = "error"
    """`error:NAME` raises one of our errors by the name of its class, or an OSError by that of its errno (ENOSPC)."""
    HANG = "hang"
    """Nothing goes on there until somebody removes the file that says so."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is to happen at the `nth` passing of `point`."""

    point: str
    nth: int
    fault: Fault
    kind: str

    @classmethod
    def parse(cls, text: str) -> "_Setting | None":
        found = _SETTING.fullmatch(text.strip())
        if found is None:
            return None
        return cls(found["point"], int(found["nth"] or 1), Fault(found["fault"] or "kill"), found["kind"] or "")


def reach(point: CrashPoint) -> None:
    """Pass `point`, or meet there what the environment says.

    Raises:
        DmdeltaError, OSError: the environment says so.
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
            armed.unlink()  # the process that takes over goes on
        except FileNotFoundError:
            return  # another one has passed it at the same time, and meets it
        _passed.clear()
    _meet(setting, armed)


def _meet(setting: _Setting, armed: Path | None) -> None:
    if setting.fault is Fault.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if setting.fault is Fault.ERROR:
        raise _error(setting)
    assert armed is not None, "what hangs is let go on by a file"
    hangs = armed.with_name(armed.name + HANGS)
    hangs.touch()
    while hangs.exists():
        time.sleep(_NAP_SECONDS)


def _error(setting: _Setting) -> Exception:
    kind = all_errors().get(setting.kind)
    if kind is not None:
        return kind(f"a failpoint at {setting.point}", hint="none: a test asked for it")
    number = int(getattr(errno, setting.kind))
    return OSError(number, f"{os.strerror(number)}, says a failpoint at {setting.point}")


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""
