"""The relay folder: its segments, in order and without gaps. The directory listing is the only index."""

import io
import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from dmdelta.errors import CorruptBinlog, SourceError
from dmdelta.model.position import Position, file_number
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment, parse_epoch_folder, parse_segment_name

ARCHIVE_EPOCH = 1
_HEADER_SIZE = 19
_SIZE_AT = slice(FIRST_OFFSET + 9, FIRST_OFFSET + 13)
"""Position of the first event's size:
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html"""


def list_segments(folder: str | Path, source_id: str) -> list[Segment]:
    """All segments below a source's relay folder, in log order and checked for gaps.

    The folder may also be an archive: whole binlog files, directly or in epoch folders.

    Raises:
        SourceError: the folder does not exist.
        CorruptBinlog: two adjacent segments do not join.
    """
    root = Path(folder)
    if not root.is_dir():
        raise SourceError(
            f"relay folder {root} does not exist", hint="start the relay first, or fix relay.dir in the spec"
        )
    before: list[Segment] | None = None
    while True:
        segments = sorted(_walk(root, source_id), key=lambda segment: segment.order)
        try:
            check_continuity(segments)
        except CorruptBinlog:
            if segments == before:
                raise
            before = segments  # unless the oldest segments were purged during the listing
        else:
            return segments


def read_path(path: str | Path, source_id: str) -> list[Segment]:
    """The segments at a path: a relay or archive folder, one segment, or one whole binlog file."""
    place = Path(path)
    if place.is_dir():
        return list_segments(place, source_id)
    span = parse_segment_name(place.name)
    if span is not None:
        epoch = parse_epoch_folder(place.parent.parent.name)
        return [Segment(str(place), source_id, epoch[1] if epoch else ARCHIVE_EPOCH, place.parent.name, *span)]
    if not place.is_file():
        raise SourceError(f"no binlog file at {place}", hint="specify a binlog file, a segment or a relay folder")
    return [_whole_file(place, source_id, ARCHIVE_EPOCH)]


def open_segment(segment: Segment) -> BinaryIO:
    """The segment as a binlog file: magic, format description, and the bytes [start, end) of the server's file.

    Raises:
        FileNotFoundError: the file has been removed.
    """
    file = open(segment.path, "rb")  # noqa: SIM115 - the caller closes it
    if not segment.skip:
        return file
    head = file.read(FIRST_OFFSET + _HEADER_SIZE)
    head += file.read(int.from_bytes(head[_SIZE_AT], "little") - _HEADER_SIZE)
    # The file of a segment that starts at the start of the server's file has the format description among its bytes.
    begins_file = segment.start - segment.skip == FIRST_OFFSET
    file.seek(segment.start if begins_file else len(head) + segment.skip)
    return io.BufferedReader(_Joined(head, file))


class _Joined(io.RawIOBase):
    """Bytes, followed by the rest of a file."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file = io.BytesIO(head), file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        piece = self._head.read(len(buffer)) or self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._file.close()
        super().close()


def check_continuity(segments: Iterable[Segment]) -> None:
    """Check that adjacent segments join byte to byte, or that the next one is the start of the next binlog file.

    Raises:
        CorruptBinlog: a gap or an overlap, with both segments.
    """
    for before, after in pairwise(segments):
        if not follows(before.end_position, after):
            raise CorruptBinlog(
                "segments do not join",
                hint="a segment is missing or was modified: restore it, or start a new epoch from a snapshot",
                ends=str(before.end_position),
                begins=str(after.begin_position),
                path=after.path,
            )


def follows(end: Position, segment: Segment) -> bool:
    """Whether `segment` continues the log at `end`. A new epoch may start anywhere: GTIDs prove its continuity."""
    begin = segment.begin_position
    if begin.epoch != end.epoch:
        return begin.epoch > end.epoch
    opens_next_file = (
        segment.start == FIRST_OFFSET and file_number(segment.binlog_file) == file_number(end.binlog_file) + 1
    )
    return begin == end or opens_next_file


def _walk(root: Path, source_id: str) -> Iterator[Segment]:
    yield from _epoch_segments(root, source_id, ARCHIVE_EPOCH)
    for entry in os.scandir(root):
        epoch = parse_epoch_folder(entry.name) if entry.is_dir() else None
        if epoch is not None and not _holds_segments(Path(entry.path)):
            yield from _epoch_segments(Path(entry.path), source_id, epoch[1])


def _epoch_segments(folder: Path, source_id: str, epoch: int) -> Iterator[Segment]:
    for entry in os.scandir(folder):
        place = Path(entry.path)
        if entry.is_dir():
            for name in _names_in(place):
                span = parse_segment_name(name)
                if span is not None:
                    yield Segment(str(place / name), source_id, epoch, entry.name, *span)
        elif _is_binlog(place):
            yield _whole_file(place, source_id, epoch)


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []  # purged since the listing


def _holds_segments(folder: Path) -> bool:
    """A binlog file's folder `binlog.000001/` looks like an epoch's: they are distinguished by their content."""
    return any(parse_segment_name(entry.name) for entry in os.scandir(folder))


def _is_binlog(place: Path) -> bool:
    if not place.suffix[1:].isdigit():
        return False
    with place.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _whole_file(place: Path, source_id: str, epoch: int) -> Segment:
    return Segment(str(place), source_id, epoch, place.name, FIRST_OFFSET, place.stat().st_size)
