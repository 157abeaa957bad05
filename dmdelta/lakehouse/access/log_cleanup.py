"""Removes old files from a table's log in a folder of this machine: exactly, and with all that belongs to a commit.

Spark removes expired files only when it writes a checkpoint, and whole days of them; delta-rs leaves the checksums that
Spark and Hadoop keep beside each commit, three of its four files.

A reader needs the files from the newest checkpoint on, and those of a version that it names from the checkpoint before
it. So everything before a checkpoint may go once all of it is old, the oldest first: what is left has no gap at any
moment.
"""

import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from dmdelta.lakehouse.access.commit_times import commit_file

LOG_RETENTION = "delta.logRetentionDuration"
"""The table property."""
CHECKSUMS_KEPT = timedelta(minutes=10)
"""Checksums of versions are read while the versions are new."""
_FILE = re.compile(r"\.?(\d{20})\.(json|crc|checkpoint(?:\.\d{10}\.\d{10})?\.parquet)(\.crc)?")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OTHER_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.[0-9a-f]{8}-[0-9a-f-]{27}\.(json|parquet)")
_VACUUM = "_last_vacuum_info"
_VACUUMED_TO = "latestCommitVersionOutsideOfRetentionWindow"


@dataclass(frozen=True, slots=True)
class LogCleanup:
    """What to remove from a log.

    Attributes:
        first: the oldest version that remains; None: all remain.
        files: the names of the files to remove, in this order.
    """

    first: int | None
    files: tuple[str, ...]


def plan_log_cleanup(
    names: Iterable[str],
    written: Callable[[int], datetime | None],
    log: timedelta,
    now: datetime,
    newest: int | None = None,
) -> LogCleanup:
    """Plan the removal of commits that are older than `log`, and of older checksums.

    Args:
        names: of the log's files.
        written: the time of a version's commit; None: its file has just been removed.
        newest: the newest version that may become the oldest one; None: any.
    """
    listed = list(names)
    if any(map(_OTHER_CHECKPOINT.fullmatch, listed)):
        return LogCleanup(None, ())  # its parts are in files that only the checkpoint names
    checkpoints = sorted((int(found[1]) for found in map(_CHECKPOINT.fullmatch, listed) if found), reverse=True)

    def oldest_kept(age: timedelta) -> int | None:
        """The newest checkpoint of which everything before has this age."""
        times = ((version, written(version)) for version in checkpoints)
        return next((version for version, at in times if at is not None and now - at >= age), None)

    first = oldest_kept(log)
    if first is not None and newest is not None and first > newest:
        first = next((version for version in checkpoints if version <= newest), None)
    checksums = oldest_kept(min(CHECKSUMS_KEPT, log))
    parsed = sorted((int(found[1]), name, found) for name in listed if (found := _FILE.fullmatch(name)))
    files = [
        name
        for version, name, found in parsed
        if (first is not None and version < first)
        or (checksums is not None and version < checksums and _is_checksum(found))
    ]
    return LogCleanup(first, tuple(files))


def _is_checksum(file: "re.Match[str]") -> bool:
    """Whether a file is Spark's checksum of a version, or Hadoop's checksum of it or of a commit."""
    return file[2] == "crc" or (file[2] == "json" and file[3] is not None)


def read_log_cleanup(log: Path, kept: timedelta, newest: int | None = None) -> LogCleanup:
    """As `plan_log_cleanup`, of a log's folder and now."""
    now = datetime.now(timezone.utc)
    try:
        names = os.listdir(log)
    except FileNotFoundError:
        return LogCleanup(None, ())
    return plan_log_cleanup(names, lambda version: _written(log, version), kept, now, newest)


def remove_files(log: Path, cleanup: LogCleanup) -> None:
    """Remove what is planned; another process may do so at the same time."""
    for name in cleanup.files:
        (log / name).unlink(missing_ok=True)


def _written(log: Path, version: int) -> datetime | None:
    with suppress(FileNotFoundError):
        return datetime.fromtimestamp(commit_file(log, version).stat().st_mtime, timezone.utc)
    return None


def vacuumed_to(log: Path) -> int | None:
    """The version up to which Spark's last VACUUM has removed old files; None: unknown. The next one continues there,
    and needs the commits from there on, or else has to list all files of the table.
    """
    try:
        found: int | None = json.loads((log / _VACUUM).read_text("utf-8")).get(_VACUUMED_TO)
    except (FileNotFoundError, ValueError):
        return None
    return found


def record_vacuum(log: Path, files: timedelta) -> None:
    """Record a VACUUM that listed all files, which Spark does not do: otherwise every later one would list them, too.

    Args:
        files: how long replaced files remain.
    """
    expired = datetime.now(timezone.utc) - files
    versions = sorted((int(name[:20]) for name in os.listdir(log) if re.fullmatch(r"\d{20}\.json", name)), reverse=True)
    found = next((one for one in versions if (at := _written(log, one)) is not None and at <= expired), None)
    if found is None and versions:
        found = versions[-1]  # nothing that the log knows of is old enough
    if found is not None:
        (log / f"{_VACUUM}.new").write_text(json.dumps({_VACUUMED_TO: found}) + "\n", "utf-8")
        (log / f".{_VACUUM}.crc").unlink(missing_ok=True)
        (log / f"{_VACUUM}.new").replace(log / _VACUUM)
