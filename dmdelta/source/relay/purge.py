"""Purges the relay folder: landed segments are removed by age, or when disk space runs short.

The oldest are removed first, so the remaining log has no gap. The newest is kept: it marks where the log on disk ends.
What has landed is recorded before; on a full disk, after.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dmdelta.errors import CorruptBinlog
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.segments import epoch_begin, epoch_folder_of, follows
from dmdelta.source.relay.volume import scratch_folder

log = get_logger(__name__)
_LANDED = "landed.json"
"""The file in a source's folder that contains what had landed when segments were last purged."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Known:
    """What the engine knows to have landed: everything before `position`, which is `gtid_set` (text)."""

    position: Position
    gtid_set: str

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Known":
        """The result of `asdict`, back from JSON."""
        return cls(Position(**fields["position"]), fields["gtid_set"])


def record_landed(folder: Path, known: Known) -> None:
    """Record what has landed in a source's folder, unless it has a newer record.

    Without it, the GTID set of the folder would lack the transactions of segments that are purged afterwards.

    Raises:
        CorruptBinlog: the existing record is damaged.
        OSError: the file cannot be written.
    """
    with _recording_alone(folder):
        before = landed_at_purge(folder)
        if before is not None and before.position >= known.position:
            return
        fresh = folder / f"{_LANDED}.{os.getpid()}.new"  # another machine may purge on a Volume
        try:
            with fresh.open("w") as stream:
                json.dump(asdict(known), stream)
                stream.flush()
                os.fsync(stream.fileno())  # a power failure must not keep the purge and lose the record
            fresh.replace(folder / _LANDED)
        finally:
            fresh.unlink(missing_ok=True)


@contextmanager
def _recording_alone(folder: Path) -> Iterator[None]:
    """Wait for other processes of this machine that record: a task and a command may purge at the same time."""
    place = scratch_folder(folder)
    place.mkdir(parents=True, exist_ok=True)
    lock = os.open(place, os.O_RDONLY)  # the folder itself: a full disk may have no space for a lock file
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def landed_at_purge(folder: Path) -> Known | None:
    """What `record_landed` recorded last; None if nothing was purged.

    Raises:
        CorruptBinlog: the file is damaged.
    """
    place = folder / _LANDED
    try:
        return Known.from_dict(json.loads(place.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptBinlog(f"cannot read {place}: {error}", hint="remove this file") from error


@dataclass(frozen=True, slots=True)
class PurgePolicy:
    """Which landed segments are kept.

    Attributes:
        expires: age at which a segment is removed.
        remain_space: bytes of the disk to keep free, if necessary by removing segments that have not expired.
    """

    expires: timedelta
    remain_space: int


@dataclass(frozen=True, slots=True)
class OldSegment:
    """A landed segment and its creation time."""

    segment: Segment
    cut_at: datetime


def landed_segments(segments: Sequence[Segment], landed: Position) -> list[OldSegment]:
    """The segments of a listing that may be purged, oldest first."""
    old: list[OldSegment] = []
    for segment in segments[:-1]:
        if segment.end_position > landed:
            break
        with suppress(FileNotFoundError):  # another process purges, too
            cut_at = datetime.fromtimestamp(Path(segment.path).stat().st_mtime, timezone.utc)
            old.append(OldSegment(segment, cut_at))
    return old


def plan_purge(old: Sequence[OldSegment], now: datetime, free: int, policy: PurgePolicy) -> tuple[Segment, ...]:
    """The segments to remove now.

    Args:
        free: free bytes of the disk.
    """
    chosen: list[Segment] = []
    for each in old:
        if now - each.cut_at < policy.expires and free >= policy.remain_space:
            break
        chosen.append(each.segment)
        free += each.segment.size
    return tuple(chosen)


def purge(segments: Sequence[Segment], landed: Known) -> int:
    """Remove segments, and the folders of binlog files that are then empty; returns the bytes of the log removed.

    Args:
        landed: at least everything in the segments. It is recorded, because a relay that follows another server needs
            the GTID set of the whole log.

    Raises:
        CorruptBinlog: as `record_landed`.
        OSError: the record cannot be written, and the disk is not full.
    """
    if not segments:
        return 0
    root = epoch_folder_of(segments[0]).parent
    # On a full disk the segments make room for the record. If the process is killed before it has written it, the
    # relay finds a gap in the log on disk: it then has no GTID set, until the next start tells it what has landed.
    recorded = _has_recorded(root, landed)
    removed = _remove(segments)
    if not recorded and not _has_recorded(root, landed):
        log.warning("the disk is full: what has landed is not recorded", source=segments[0].source_id)
    log.info("segments purged", source=segments[0].source_id, count=len(segments), bytes=removed)
    return removed


def _has_recorded(folder: Path, known: Known) -> bool:
    """Record what has landed; False if the disk is full."""
    try:
        record_landed(folder, known)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        return False
    return True


def _remove(segments: Sequence[Segment]) -> int:
    removed = 0
    for segment in segments:
        with suppress(FileNotFoundError):
            Path(segment.path).unlink()
            removed += segment.size
    for folder in {Path(segment.path).parent for segment in segments}:
        with suppress(OSError):  # the folder has other segments
            folder.rmdir()
    return removed


def assert_whole(segments: Sequence[Segment]) -> None:
    """Check that nothing of the first epoch in a listing was purged: a task that has landed nothing needs all of it.

    Raises:
        CorruptBinlog: the segments start later than the epoch.
    """
    if not segments:
        return
    first = segments[0]
    begin = epoch_begin(epoch_folder_of(first))
    if begin is not None and not follows(Position(begin.epoch, begin.binlog_file, begin.offset), first):
        raise CorruptBinlog(
            f"segments before {first.begin_position} were purged after they had landed, and nothing has landed",
            hint="restore the bronze table; or start over: run with --remove-meta",
            path=first.path,
        )
