"""Purging the relay folder: segments that have landed go by age, or when the disk runs short.

The oldest go first, so the log that is left has no gap. The newest stays: it says where the log on disk ends.
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
from dmdelta.segments import follows
from dmdelta.source.folder import epoch_begin

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PurgePolicy:
    """What of the segments that have landed is kept.

    Attributes:
        expires: so long after it was cut, a segment goes.
        remain_space: bytes of the disk that stay free, if need be by segments that have not expired.
    """

    expires: timedelta
    remain_space: int


@dataclass(frozen=True, slots=True)
class OldSegment:
    """A segment that has landed, and since when it is there."""

    segment: Segment
    cut_at: datetime


def landed_segments(segments: Sequence[Segment], landed: Position) -> list[OldSegment]:
    """Those of a listing that may be purged, oldest first."""
    found: list[OldSegment] = []
    for segment in segments[:-1]:
        if segment.end_position > landed:
            break
        with suppress(FileNotFoundError):  # somebody else purges, too
            cut_at = datetime.fromtimestamp(Path(segment.path).stat().st_mtime, timezone.utc)
            found.append(OldSegment(segment, cut_at))
    return found


def plan_purge(old: Sequence[OldSegment], now: datetime, free: int, policy: PurgePolicy) -> tuple[Segment, ...]:
    """The segments that go now.

    Args:
        free: bytes of the disk.
    """
    chosen: list[Segment] = []
    for each in old:
        if now - each.cut_at < policy.expires and free >= policy.remain_space:
            break
        chosen.append(each.segment)
        free += each.segment.size
    return tuple(chosen)


def purge(segments: Sequence[Segment]) -> int:
    """Remove segments, and the folders of binlog files that are empty then; how many bytes of the log went."""
    gone = 0
    for segment in segments:
        with suppress(FileNotFoundError):
            Path(segment.path).unlink()
            gone += segment.size
    for folder in {Path(segment.path).parent for segment in segments}:
        with suppress(OSError):  # it has other segments
            folder.rmdir()
    if segments:
        log.info("segments purged", source=segments[0].source_id, count=len(segments), bytes=gone)
    return gone


def assert_whole(segments: Sequence[Segment]) -> None:
    """Nothing of the first epoch in a listing was purged: whoever has landed nothing needs all of it.

    Raises:
        CorruptBinlog: the segments begin later than the epoch did.
    """
    if not segments:
        return
    first = segments[0]
    begin = epoch_begin(Path(first.path).parent.parent)
    if begin is not None and not follows(Position(begin.epoch, begin.binlog_file, begin.offset), first):
        raise CorruptBinlog(
            f"segments before {first.begin_position} were purged after they had landed, and nothing has landed",
            hint="restore the bronze table; or begin anew: run with --remove-meta",
            path=first.path,
        )
