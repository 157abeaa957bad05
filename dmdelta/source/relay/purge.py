"""Purges the relay folder: landed segments are removed by age, or when disk space runs short.

The oldest are removed first, so the remaining log has no gap. The newest is kept: it marks where the log on disk ends.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from dmdelta.errors import CorruptBinlog
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.segments import epoch_begin, epoch_folder_of, follows

log = get_logger(__name__)


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


def purge(segments: Sequence[Segment]) -> int:
    """Remove segments, and the folders of binlog files that are then empty; returns the bytes of the log removed."""
    removed = 0
    for segment in segments:
        with suppress(FileNotFoundError):
            Path(segment.path).unlink()
            removed += segment.size
    for folder in {Path(segment.path).parent for segment in segments}:
        with suppress(OSError):  # the folder has other segments
            folder.rmdir()
    if segments:
        log.info("segments purged", source=segments[0].source_id, count=len(segments), bytes=removed)
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
