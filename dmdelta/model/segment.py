"""Segments: immutable pieces of a binlog, cut at transaction boundaries. The folder listing is their index.

`<relay>/<source_id>/<server_uuid>.<epoch>/<binlog_file>/<start>-<end>.binlog`, start and end zero-padded byte offsets
in the original file. The content is a valid binlog file: magic, a copy of the format description event, then the
bytes [start, end). With start = 4 the format description event is itself the first of those bytes and is not
repeated. A whole binlog file directly in the epoch folder is the segment [4, size).
"""

import re
from dataclasses import dataclass, replace

from dmdelta.errors import SourceError
from dmdelta.model.position import Position, seq_of

MAGIC = b"\xfebin"
FIRST_OFFSET = len(MAGIC)
OFFSET_DIGITS = 14
EPOCH_DIGITS = 6
CUT_BYTES = 16 << 20
"""At this size the relay cuts; a larger segment holds a larger transaction."""

MOST_BYTES = 200
_NO_PART = re.compile(r"[/\\\x00-\x1f]")
_NAME = re.compile(r"^(\d+)-(\d+)\.binlog$")
_EPOCH = re.compile(r"^(.+)\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file, or what is behind `start` in it.

    Attributes:
        start: byte offset in the server's own file, like `end`.
        skip: bytes of the log ahead of `start` that the file holds, too (`behind`).
    """

    path: str
    source_id: str
    epoch: int
    binlog_file: str
    start: int
    end: int
    skip: int = 0

    @property
    def begin_position(self) -> Position:
        return Position(self.epoch, self.binlog_file, self.start)

    @property
    def end_position(self) -> Position:
        return Position(self.epoch, self.binlog_file, self.end)

    @property
    def size(self) -> int:
        """Bytes of the log that the segment holds."""
        return self.end - self.start

    @property
    def order(self) -> tuple[int, int]:
        return (self.epoch, seq_of(self.binlog_file, self.start))

    def behind(self, position: Position) -> "Segment":
        """What lies behind a transaction boundary within the segment; all of it if `position` is not within."""
        if not self.begin_position < position < self.end_position:
            return self
        return replace(self, start=position.offset, skip=self.skip + position.offset - self.start)


def segment_name(start: int, end: int) -> str:
    """The file name of the segment [start, end)."""
    return f"{start:0{OFFSET_DIGITS}d}-{end:0{OFFSET_DIGITS}d}.binlog"


def parse_segment_name(name: str) -> tuple[int, int] | None:
    """(start, end) of a segment's file name, None for any other file."""
    found = _NAME.match(name)
    return (int(found.group(1)), int(found.group(2))) if found else None


def folder_part(told: str) -> str:
    """A name that a server has told (its uuid, a binlog file) as one part of a path below the relay's folder.

    Raises:
        SourceError: it would lead elsewhere. No server has such names.
    """
    if _NO_PART.search(told) or told in ("", ".", "..") or len(told.encode(errors="replace")) > MOST_BYTES:
        raise SourceError(
            f"a server tells of {told[:80]!r}, which is no name of a file",
            hint="find out who answers at this address; with security.ssl-ca in the spec it is proved",
        )
    return told


def epoch_folder(server_uuid: str, epoch: int) -> str:
    """The folder name of an epoch: `<server_uuid>.<epoch>`.

    Raises:
        SourceError: that is no folder's name.
    """
    return f"{folder_part(server_uuid)}.{epoch:0{EPOCH_DIGITS}d}"


def parse_epoch_folder(name: str) -> tuple[str, int] | None:
    """(server_uuid, epoch) of an epoch's folder name, None for any other name."""
    found = _EPOCH.match(name)
    return (found.group(1), int(found.group(2))) if found else None
