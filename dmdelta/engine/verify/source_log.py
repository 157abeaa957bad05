"""Finds the parts of a source's log for `verify`: in the archive, on the server, or in the relay's segments."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.task.mapping import FIRST_TRY, endpoint_of, flavor_of_source
from dmdelta.errors import SourceError
from dmdelta.logging import get_logger
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position, file_number
from dmdelta.model.segment import FIRST_OFFSET, Segment, parse_epoch_folder
from dmdelta.segments import SkippedGtids, list_segments
from dmdelta.source.connection import foreign_errors, open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.archive import archive_files
from dmdelta.source.relay.relay_dir import epoch_begins, newest_begin
from dmdelta.source.server import server_identity, server_log
from dmdelta.verification.raw_events import RawEvent, segment_events, server_events

log = get_logger(__name__)


class Origin(str, Enum):
    """The origin of a part of the log."""

    ARCHIVE = "archive"
    SERVER = "server"
    RELAY = "relay"
    NONE = "none"
    """The part is no longer available."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of the log, and its origin.

    Attributes:
        segment: the file that contains it; None if the server has it, or nothing does.
    """

    origin: Origin
    begin: Position
    end: Position
    segment: Segment | None = None


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The available parts of a source's log.

    Attributes:
        parts: in order of preference.
        skipped: by epoch, the transactions that did not land because an earlier epoch has them.
    """

    flavor: Flavor
    parts: Sequence[LogPart]
    endpoint: Endpoint | None = None
    skipped: Mapping[int, SkippedGtids] = field(default_factory=dict)

    def events(self, part: LogPart, *, from_start: bool) -> Iterator[RawEvent]:
        """The events of a part; from a segment, also the events before the part.

        Args:
            from_start: read a server's file from its start, because the part may begin inside a transaction.

        Raises:
            SourceError, SourceUnavailable: the server refuses. CorruptBinlog: a file is damaged or missing.
        """
        if part.segment is not None:
            yield from segment_events(part.segment)
        elif part.origin is Origin.SERVER and self.endpoint is not None:
            offset = FIRST_OFFSET if from_start else part.begin.offset
            connection = open_connection(self.endpoint, FIRST_TRY)
            try:
                with foreign_errors(self.endpoint):
                    yield from server_events(connection, part.begin.binlog_file, offset)
            finally:
                connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001 - it sends and reads no command


def find_log(spec: TaskSpec, source: SourceConfig, epoch: int) -> SourceLog:
    """Find the available parts of a source's log: an archive's files or those of its server, and the relay's segments.

    Args:
        epoch: the newest landed epoch; a server has no other.

    Raises:
        SourceError, SourceUnavailable: the server does not answer, and there are no relay segments to use instead.
    """
    folder = Path(spec.relay_dir(source)) / source.source_id
    relay = _relay_parts(folder, source.source_id)
    endpoint = endpoint_of(source)
    if endpoint is None:
        return SourceLog(flavor_of_source(source), [*_archive_parts(source, epoch), *relay])
    uuids = {_uuid(part) for part in relay if part.begin.epoch == epoch}
    try:
        flavor, uuid, parts = _server_parts(endpoint, epoch)
    except SourceError as error:
        begin = newest_begin(folder) if folder.is_dir() else None
        if begin is None:
            raise
        log.warning("the server does not answer: reading the relay's segments", source=source.source_id)
        log.debug("the server does not answer", why=error.message)
        return SourceLog(begin.flavor, relay, skipped=_skipped(folder))
    if uuids and uuid not in uuids:
        parts = []  # the server was replaced: its files have the same names but other content
    return SourceLog(flavor, [*parts, *relay], endpoint, _skipped(folder))


def _archive_parts(source: SourceConfig, epoch: int) -> list[LogPart]:
    folder = Path(source.binlog_dir or "")
    parts = []
    for name, size in archive_files(folder).items():
        segment = Segment(str(folder / name), source.source_id, epoch, name, FIRST_OFFSET, size)
        parts.append(_part(Origin.ARCHIVE, segment))
    return parts


def _server_parts(endpoint: Endpoint, epoch: int) -> tuple[Flavor, str, list[LogPart]]:
    with open_connection(endpoint, FIRST_TRY) as connection:
        identity = server_identity(connection)
        files = server_log(connection, identity).files
    parts = [
        LogPart(Origin.SERVER, Position(epoch, name, FIRST_OFFSET), Position(epoch, name, size))
        for name, size in files.items()
    ]
    return identity.flavor, identity.uuid, parts


def _relay_parts(folder: Path, source_id: str) -> list[LogPart]:
    return [_part(Origin.RELAY, one) for one in list_segments(folder, source_id)] if folder.is_dir() else []


def _skipped(folder: Path) -> dict[int, SkippedGtids]:
    found = {begin.epoch: begin.skipped for begin in epoch_begins(folder)}
    return {epoch: skipped for epoch, skipped in found.items() if skipped is not None}


def _part(origin: Origin, segment: Segment) -> LogPart:
    return LogPart(origin, segment.begin_position, segment.end_position, segment)


def _uuid(part: LogPart) -> str | None:
    assert part.segment is not None
    parsed = parse_epoch_folder(Path(part.segment.path).parent.parent.name)
    return parsed[0] if parsed else None


def plan_parts(begin: Position, end: Position, available: Sequence[LogPart]) -> list[LogPart]:
    """The parts of a range of one epoch, in order and without gaps: unavailable parts have `Origin.NONE`.

    Each position is read from the first of `available` that has it. A part's `begin` and `end` are within the range.
    """
    ends = {part.end for part in available}
    parts: list[LogPart] = []
    at = begin
    while at < end:
        part = next((part for part in available if part.begin <= at < part.end), None)
        if part is not None:
            upto = min(part.end, end)
            parts.append(replace(part, begin=at, end=upto))
            at = upto
            continue
        following = min([end, *(part.begin for part in available if part.begin > at)])
        if at not in ends or not opens_next_file(at, following):
            parts.append(LogPart(Origin.NONE, at, following))
        at = following
    return parts


def opens_next_file(at: Position, following: Position) -> bool:
    """Whether a position is the start of the binlog file after that of `at`."""
    return following.offset == FIRST_OFFSET and file_number(following.binlog_file) == file_number(at.binlog_file) + 1
