"""Writing segments: bytes into a temporary file, renamed to what it holds when it is cut. See dmdelta.model.segment."""

import os
import shutil
from pathlib import Path
from typing import BinaryIO

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, folder_part, segment_name
from dmdelta.source.volume import scratch_folder

SUFFIX = ".part"
"""Ends the name of a file that is still being written."""

CUT_SECONDS = 1.0


class SegmentWriter:
    """Writes the bytes of one binlog file as consecutive segments.

    Attributes:
        start: offset of the first byte of the segment in the making.
        end: offset behind the last byte written.
        published: offset up to which segments are on disk under their names.
    """

    def __init__(self, epoch_folder: Path, binlog_file: str, start: int, description: bytes) -> None:
        """
        Args:
            description: the file's format description event; b"" if `start` is 4, where it is written anyway.

        Raises:
            SourceError: `binlog_file`, which comes from the server, would lead out of the folder.
        """
        folder_part(binlog_file)
        self._folder = epoch_folder / binlog_file
        self._unfinished = scratch_folder(epoch_folder.parent) / epoch_folder.name / binlog_file
        self._description = description
        self._stream: BinaryIO | None = None
        self.start = self.end = self.published = start

    @property
    def size(self) -> int:
        """Bytes of the log that the segment in the making holds."""
        return self.end - self.start

    def write(self, data: bytes | memoryview) -> None:
        if self._stream is None:
            self._stream = self._begin()
        self._stream.write(data)
        self.end += len(data)

    def describe(self, description: bytes) -> None:
        """The format description event that the next segments of this file are to begin with."""
        self._description = description

    def cut(self, end: int) -> None:
        """Publish [start, end); what was written beyond begins the next segment."""
        if self._stream is None or end == self.start:
            return
        beyond = self.end - end
        rest = self._take_back(beyond) if beyond else b""
        self._publish(end)
        if rest:
            self.write(rest)

    def discard_from(self, end: int) -> None:
        """Publish [start, end) and forget the rest: a transaction that did not arrive whole."""
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
        # A name says that the bytes are there: also after a power cut.
        os.fsync(self._stream.fileno())
        self._stream.close()
        self._stream = None
        reach(CrashPoint.RELAY_BEFORE_RENAME)
        _move(self._part, self._folder / segment_name(self.start, end))
        reach(CrashPoint.RELAY_AFTER_RENAME)
        self.start = self.end = self.published = end


def _move(part: Path, place: Path) -> None:
    """Give a whole file its name; one from elsewhere is copied under a temporary name first."""
    if part.parent == place.parent:
        part.rename(place)
        return
    copied = place.with_suffix(SUFFIX)
    shutil.copyfile(part, copied)
    copied.rename(place)
    part.unlink()


def remove_parts(folder: Path) -> None:
    """Remove what a killed relay left half written."""
    for place in (folder, scratch_folder(folder)):
        for part in place.glob(f"*/*/*{SUFFIX}"):
            part.unlink(missing_ok=True)
