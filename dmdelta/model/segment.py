"""Segments: immutable parts of a binlog, cut at transaction boundaries. The folder listing is their index.

`<relay>/<source_id>/<server_uuid>.<epoch>/<binlog_file>/<start>-<end>.binlog`, start and end zero-padded byte offsets
in the original file. The content is a valid binlog file: magic, a copy of the format description event, then the bytes
[start, end). With start = 4 the format description event is itself the first of those bytes and is not repeated. A
whole binlog file directly in the epoch folder is the segment [4, size).
"""

import re
from dataclasses import dataclass, replace

from dmdelta.errors import SourceError
from dmdelta.model.position import Position, file_number, seq_of

MAGIC = b"\xfebin"
FIRST_OFFSET = len(MAGIC)
OFFSET_DIGITS = 14
EPOCH_DIGITS = 6
CUT_BYTES = 16 << 20
"""The size at which the relay cuts a segment; a segment is larger only if it holds a larger transaction."""

MOST_BYTES = 200
_NO_PART = re.compile(r"[/\\\x00-\x1f]")
_NAME = re.compile(r"^(\d+)-(\d+)\.binlog$")
_EPOCH = re.compile(r"^(.+)\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file, or the part of it after `start`.

    Attributes:
        start: byte offset in the server's own file, like `end`.
        skip: bytes of the log before `start` that the file also contains (`behind`).
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
        """The part after a transaction boundary within the segment; all of it if `position` is not within it."""
        if not self.begin_position < position < self.end_position:
            return self
        return replace(self, start=position.offset, skip=self.skip + position.offset - self.start)


def continues(end: Position, begin: Position) -> bool:
    """Whether the log from `begin` on follows that before `end`: no rows lie between.

    A new epoch may start anywhere: GTIDs prove its continuity.
    """
    if begin.epoch != end.epoch:
        return begin.epoch > end.epoch
    opens_next_file = (
        begin.offset == FIRST_OFFSET and file_number(begin.binlog_file) == file_number(end.binlog_file) + 1
    )
    return begin == end or opens_next_file


def segment_name(start: int, end: int) -> str:
    """The file name of the segment [start, end)."""
    return f"{start:0{OFFSET_DIGITS}d}-{end:0{OFFSET_DIGITS}d}.binlog"


def parse_segment_name(name: str) -> tuple[int, int] | None:
    """(start, end) of a segment's file name, None for any other file."""
    match = _NAME.match(name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def folder_part(name: str) -> str:
    """A name reported by a server (its uuid, a binlog file) as one part of a path below the relay's folder.

    Raises:
        SourceError: the name would lead outside of the folder. No real server uses such names.
    """
    if _NO_PART.search(name) or name in ("", ".", "..") or len(name.encode(errors="replace")) > MOST_BYTES:
        raise SourceError(
            f"the server reports {name[:80]!r}, which is not a file name",
            hint="check which server answers at this address; security.ssl-ca in the spec verifies its identity",
        )
    return name


def epoch_folder(server_uuid: str, epoch: int) -> str:
    """The folder name of an epoch: `<server_uuid>.<epoch>`.

    Raises:
        SourceError: the uuid is not valid in a folder name.
    """
    return f"{folder_part(server_uuid)}.{epoch:0{EPOCH_DIGITS}d}"


def parse_epoch_folder(name: str) -> tuple[str, int] | None:
    """(server_uuid, epoch) of an epoch's folder name, None for any other name."""
    match = _EPOCH.match(name)
    return (match.group(1), int(match.group(2))) if match else None
