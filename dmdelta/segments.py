"""The relay folder: its segments, in order and without gaps, and how each epoch started. The directory listing is the
only index.
"""

import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from dmdelta.errors import CorruptBinlog, SourceError
from dmdelta.model.gtid import Flavor, GtidSet, parse_gtid_set
from dmdelta.model.position import FILE_SHIFT, Position, numbered_file, seq_of
from dmdelta.model.segment import (
    FIRST_OFFSET,
    MAGIC,
    Segment,
    continues,
    epoch_folder,
    parse_epoch_folder,
    parse_segment_name,
)

ARCHIVE_EPOCH = 1
BEGIN_FILE = "begin.json"
"""The file in an epoch's folder that contains its `EpochBegin`."""
_HEADER_SIZE = 19
_SIZE_AT = slice(FIRST_OFFSET + 9, FIRST_OFFSET + 13)
"""Position of the first event's size:
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html"""


@dataclass(frozen=True, slots=True)
class SkippedGtids:
    """The transactions of an epoch that are not decoded, because the task has read them before.

    Attributes:
        until: they are skipped before this `seq_of`: later ones with such GTIDs are others.
    """

    gtids: GtidSet
    until: int

    def at(self, binlog_file: str, offset: int) -> GtidSet | None:
        """The set at a position; None after the last position at which transactions are skipped."""
        return self.gtids if seq_of(binlog_file, offset) < self.until else None


@dataclass(frozen=True, slots=True)
class EpochBegin:
    """How an epoch started: stored next to its segments, because the log before it is not available.

    Attributes:
        gtid_set: the text of the set of all transactions before `offset`; None: unknown, or a server without GTIDs.
        skip_until: the epoch continues after `gtid_set`, and the server may have logged transactions of the set after
            `offset`: the `seq_of` where its log ended at that time. None: it has not.
    """

    server_uuid: str
    epoch: int
    flavor: Flavor
    binlog_file: str
    offset: int
    gtid_set: str | None
    skip_until: int | None = None

    @property
    def skipped(self) -> SkippedGtids | None:
        """The transactions that are skipped; None: none are."""
        if not self.gtid_set or self.skip_until is None:
            return None
        return SkippedGtids(parse_gtid_set(self.gtid_set, self.flavor), self.skip_until)

    @property
    def log_end(self) -> Position | None:
        """Where the server's log ended when the epoch started; None: unknown, or it does not continue after a set."""
        if self.skip_until is None:
            return None
        number, offset = divmod(self.skip_until, 1 << FILE_SHIFT)
        return Position(self.epoch, numbered_file(self.binlog_file, number), offset)


def begin_epoch(folder: Path, begin: EpochBegin) -> Path:
    """Create the epoch's folder, record how the epoch started, and return the folder."""
    place = folder / epoch_folder(begin.server_uuid, begin.epoch)
    place.mkdir(exist_ok=True)
    fresh = place / f"{BEGIN_FILE}.new"
    fresh.write_text(json.dumps(asdict(begin)))
    fresh.rename(place / BEGIN_FILE)
    return place


def epoch_begin(folder: Path) -> EpochBegin | None:
    """How the epoch of a folder started; None if no relay has used it.

    Raises:
        CorruptBinlog: the file is damaged.
    """
    place = folder / BEGIN_FILE
    try:
        return EpochBegin(**json.loads(place.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise CorruptBinlog(f"cannot read {place}: {error}", hint="remove the source's relay folder") from error


def epoch_folder_of(segment: Segment) -> Path:
    """The folder of the segment's epoch."""
    return Path(segment.path).parent.parent


def skipped_in(segment: Segment) -> GtidSet | None:
    """The transactions of a segment that the task has read in an earlier epoch; None: there are none.

    Raises:
        CorruptBinlog: as `epoch_begin`.
    """
    folder = epoch_folder_of(segment)
    begin = epoch_begin(folder) if parse_epoch_folder(folder.name) is not None else None
    skipped = begin.skipped if begin is not None else None
    return skipped.at(segment.binlog_file, segment.start) if skipped is not None else None


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


class RelayListing:
    """A relay folder that is listed again and again: segments that were there before are not examined again.

    A relay leaves up to 86,400 segments a day: to examine all of them takes a second, and landing lists the folder
    several times a second.
    """

    def __init__(self, folder: str | Path, source_id: str) -> None:
        self._root, self._source_id = Path(folder), source_id
        self._names: dict[tuple[str, int, str], set[str]] = {}
        self._segments: list[Segment] = []

    def segments(self) -> list[Segment]:
        """All segments now. Returns and raises as `list_segments`."""
        folders = _binlog_folders(self._root) if self._root.is_dir() else ()
        names = {folder: set(_names_in(Path(folder[0]))) for folder in folders}
        found = self._grown(names)
        self._segments = list_segments(self._root, self._source_id) if found is None else found
        self._names = names
        return self._segments

    def _grown(self, names: dict[tuple[str, int, str], set[str]]) -> list[Segment] | None:
        """The segments with those of new names behind them and without those that were purged; None if anything else
        has happened.
        """
        kept, before = self._segments, self._names
        gone = {f"{folder[0]}/{name}" for folder in before for name in before[folder] - names.get(folder, set())}
        if gone:
            kept = [segment for segment in kept if segment.path not in gone]
        if not names or not kept or kept[0] is not self._segments[-len(kept)]:
            return None
        new = [
            segment
            for folder, found in names.items()
            for segment in _segments_of(folder, found - before.get(folder, set()), self._source_id)
        ]
        new.sort(key=lambda segment: segment.order)
        if new and not all(follows(one.end_position, after) for one, after in pairwise([kept[-1], *new])):
            return None
        return [*kept, *new] if new else kept


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
    """Whether `segment` continues the log at `end`: see `continues`."""
    return continues(end, segment.begin_position)


def _walk(root: Path, source_id: str) -> Iterator[Segment]:
    for folder in _binlog_folders(root):
        yield from _segments_of(folder, _names_in(Path(folder[0])), source_id)
    for place, epoch in _epoch_folders(root):
        for entry in os.scandir(place):
            if not entry.is_dir() and _is_binlog(Path(entry.path)):
                yield _whole_file(Path(entry.path), source_id, epoch)


def _epoch_folders(root: Path) -> Iterator[tuple[Path, int]]:
    """The folders of epochs and their numbers; the root itself may be an archive."""
    yield root, ARCHIVE_EPOCH
    for entry in os.scandir(root):
        epoch = parse_epoch_folder(entry.name) if entry.is_dir() else None
        if epoch is not None and not _holds_segments(Path(entry.path)):
            yield Path(entry.path), epoch[1]


def _binlog_folders(root: Path) -> Iterator[tuple[str, int, str]]:
    """The folders that may have segments, each with its epoch and the binlog file's name."""
    for place, epoch in _epoch_folders(root):
        for entry in os.scandir(place):
            if entry.is_dir():
                yield entry.path, epoch, entry.name


def _segments_of(folder: tuple[str, int, str], names: Iterable[str], source_id: str) -> Iterator[Segment]:
    place, epoch, binlog_file = folder
    for name in names:
        span = parse_segment_name(name)
        if span is not None:
            yield Segment(f"{place}/{name}", source_id, epoch, binlog_file, *span)


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
