"""Versions and times of commits as Delta's DESCRIBE HISTORY gives them."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dmdelta.lakehouse.access.commit_log import Commit

_COMMIT_FILE = re.compile(r"(\d{20})\.json")


def commit_file(log: Path, version: int) -> Path:
    """The file of a commit in a log's folder."""
    return log / f"{version:020d}.json"


def listed_versions(log: Path, limit: int | None) -> list[int]:
    """The versions of the newest `limit` commits that a log's folder contains, newest first."""
    found = (_COMMIT_FILE.fullmatch(name) for name in os.listdir(log))
    return sorted((int(match[1]) for match in found if match), reverse=True)[:limit]


def timed_commits(log: Path, versions: Sequence[int], infos: Sequence[Mapping[str, Any]]) -> list[Commit]:
    """Commits, newest first, with Delta's times.

    These are the commits' own if the table has in-commit timestamps, else those of the files, increased where they are
    not later than the previous commit's.

    Args:
        infos: delta-rs' history: the `commitInfo` of each version.
    """
    commits: list[Commit] = []
    before: int | None = None
    for version, info in zip(reversed(versions), reversed(infos), strict=True):
        millis = info.get("inCommitTimestamp")
        if millis is None:
            millis = _file_millis(commit_file(log, version))
            if millis is None:
                continue  # the log retention has just removed it
            millis = millis if before is None else max(millis, before + 1)
            before = millis
        at = datetime.fromtimestamp(millis // 1000, timezone.utc).replace(microsecond=millis % 1000 * 1000)
        commits.append(Commit(version, info.get("userMetadata"), at))
    return commits[::-1]


def _file_millis(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None
