"""Named points at which a test may kill the process: DM's failpoints.

`DMDELTA_FAILPOINT=silver-before-commit:3` ends the process with SIGKILL at the third passing of that point.
`DMDELTA_FAILPOINT=@FILE` takes the same text from a file, as soon as there is one: a running process is killed once,
when the test wants it. Without the variable a point costs one dictionary look-up.
"""

import os
import signal
from collections import Counter
from enum import Enum
from pathlib import Path

VARIABLE = "DMDELTA_FAILPOINT"
_passed: Counter[str] = Counter()


class CrashPoint(str, Enum):
    """Every place between two effects where a crash must lose nothing and repeat nothing."""

    SNAPSHOT_CHUNK_READ = "snapshot-chunk-read"
    SNAPSHOT_BETWEEN_BATCHES = "snapshot-between-batches"
    SNAPSHOT_END = "snapshot-end"
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


def reach(point: CrashPoint) -> None:
    """Pass `point`, or die there if the environment says so."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return
    armed = Path(setting[1:]) if setting.startswith("@") else None
    name, _, nth = (_read(armed) if armed else setting).partition(":")
    if name != point.value:
        return
    _passed[name] += 1
    if _passed[name] == int(nth or 1):
        if armed:
            try:
                armed.unlink()  # the process that takes over lives
            except FileNotFoundError:
                return  # another one has passed it at the same time, and dies
        os.kill(os.getpid(), signal.SIGKILL)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""
