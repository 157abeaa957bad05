"""Writes segments: to a temporary file, which gets a name with the segment's range when the segment is complete.

See dmdelta.model.segment.
"""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, folder_part, segment_name
from dmdelta.source.relay.volume import is_on_volume, scratch_folder

SUFFIX = ".part"
"""Suffix of a file that is still being written."""

ABANDONED_SECONDS = 3600.0
"""A copy on a Volume that was not written for this long is abandoned. To copy a segment takes seconds to minutes."""
CUT_SECONDS = 1.0


class SegmentWriter:
    """Writes the bytes of one binlog file as consecutive segments.

    Attributes:
        start: offset of the first byte of the current segment.
        end: offset after the last byte written.
        published: offset up to which segments are published.
    """

    def __init__(self, epoch_folder: Path, binlog_file: str, start: int, description: bytes) -> None:
        """
        Args:
            description: the file's format description event; b"" if `start` is 4, where it is written anyway.

        Raises:
            SourceError: `binlog_file`, which the server supplies, would point outside the folder.
        """
        folder_part(binlog_file)
        self._folder = epoch_folder / binlog_file
        self._unfinished = scratch_folder(epoch_folder.parent) / epoch_folder.name / binlog_file
        self._description = description
        self._stream: BinaryIO | None = None
        self.start = self.end = self.published = start

    @property
    def size(self) -> int:
        """Bytes of the log in the current segment."""
        return self.end - self.start

    def write(self, data: bytes | memoryview) -> None:
        if self._stream is None:
            self._stream = self._begin()
        self._stream.write(data)
        self.end += len(data)

    def describe(self, description: bytes) -> None:
        """Set the format description event with which the next segments of this file start."""
        self._description = description

    def cut(self, end: int) -> None:
        """Publish [start, end); the bytes after `end` start the next segment."""
        if self._stream is None or end == self.start:
            return
        beyond = self.end - end
        rest = self._take_back(beyond) if beyond else b""
        self._publish(end)
        if rest:
            self.write(rest)

    def discard_from(self, end: int) -> None:
        """Publish [start, end) and discard the rest: an incomplete transaction."""
        if self._stream is None:
            return
        if end > self.start:
            self._stream.truncate(self._stream.tell() - (self.end - end))
            self._publish(end)
        else:
            self._stream.close()
            self._stream = None
            self._part.unlink()
        self.end = self.start = end

    @property
    def _part(self) -> Path:
        return self._unfinished / f"{self.start}{SUFFIX}"

    def _begin(self) -> BinaryIO:
        for folder in (self._folder, self._unfinished):
            folder.mkdir(parents=True, exist_ok=True)
        stream = self._part.open("w+b", buffering=1 << 18)
        stream.write(MAGIC)
        if self.start != FIRST_OFFSET:
            stream.write(self._description)
        return stream

    def _take_back(self, count: int) -> bytes:
        assert self._stream is not None
        at = self._stream.tell() - count
        self._stream.seek(at)
        rest = self._stream.read(count)
        self._stream.truncate(at)
        return rest

    def _publish(self, end: int) -> None:
        assert self._stream is not None
        self._stream.flush()
        # A published name guarantees that the bytes are on disk, also after a power failure.
        os.fsync(self._stream.fileno())
        self._stream.close()
        self._stream = None
        reach(CrashPoint.RELAY_BEFORE_RENAME)
        _move(self._part, self._folder / segment_name(self.start, end))
        reach(CrashPoint.RELAY_AFTER_RENAME)
        self.start = self.end = self.published = end


def _move(part: Path, place: Path) -> None:
    """Give a complete file its final name; one on another file system is first copied under a temporary name."""
    if part.parent == place.parent:
        part.rename(place)
        return
    copied = place.with_suffix(SUFFIX)
    shutil.copyfile(part, copied)
    copied.rename(place)
    part.unlink()


def remove_parts(folder: Path) -> None:
    """Remove the unfinished files of a killed relay; on a Volume, which other machines write, only abandoned ones."""
    pattern = f"*/*/*{SUFFIX}"
    for part in scratch_folder(folder).glob(pattern):
        part.unlink(missing_ok=True)
    if is_on_volume(folder):
        for part in folder.glob(pattern):
            with suppress(FileNotFoundError):  # another machine has completed it
                if time.time() - part.stat().st_mtime > ABANDONED_SECONDS:
                    part.unlink()
