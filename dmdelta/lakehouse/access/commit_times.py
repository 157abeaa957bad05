"""The times of commits as Delta's DESCRIBE HISTORY gives them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dmdelta.lakehouse.access.commit_log import Commit


def timed_commits(log: Path, history: Sequence[Mapping[str, Any]]) -> list[Commit]:
    """delta-rs' history with Delta's times of the commits, newest first.

    These are the commits' own if the table has in-commit timestamps, else those of the files, increased where they are
    not later than the previous commit's.
    """
    commits: list[Commit] = []
    before: int | None = None
    for entry in reversed(history):
        millis = entry.get("inCommitTimestamp")
        if millis is None:
            millis = _file_millis(log / f"{entry['version']:020d}.json")
            if millis is None:
                continue  # the log retention has just removed it
            millis = millis if before is None else max(millis, before + 1)
            before = millis
        at = datetime.fromtimestamp(millis // 1000, timezone.utc).replace(microsecond=millis % 1000 * 1000)
        commits.append(Commit(entry["version"], entry.get("userMetadata"), at))
    return commits[::-1]


def _file_millis(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None
