"""Where `verify` reads a range of a source's log from: the archive, the server, or the relay's segments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.task.mapping import FIRST_TRY, endpoint_of, flavor_of_source
from dmdelta.errors import SourceError
from dmdelta.logging import get_logger
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position, file_number
from dmdelta.model.segment import FIRST_OFFSET, Segment, parse_epoch_folder
from dmdelta.segments import list_segments
from dmdelta.source.connection import foreign_errors, open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.archive import archive_files
from dmdelta.source.relay.relay_dir import newest_begin
from dmdelta.source.server import server_identity, server_log
from dmdelta.verification.raw_events import RawEvent, segment_events, server_events

log = get_logger(__name__)


class Origin(str, Enum):
    """What a part of the log is read from."""

    ARCHIVE = "archive"
    SERVER = "server"
    RELAY = "relay"
    NONE = "none"
    """Nothing has it any more."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of the log, and where it is read.

    Attributes:
        segment: the file that holds it; None: the server does, or nothing.
    """

    origin: Origin
    begin: Position
    end: Position
    segment: Segment | None = None


@dataclass(frozen=True, slots=True)
class SourceLog:
    """What there is of a source's log. `parts` in the order in which they are preferred."""

    flavor: Flavor
    parts: Sequence[LogPart]
    endpoint: Endpoint | None = None

    def events(self, part: LogPart, *, from_start: bool) -> Iterator[RawEvent]:
        """The events of a part, and of its segment what is before them.

        Args:
            from_start: a server's file is read from its start on, because the part may begin inside a transaction.

        Raises:
            SourceError, SourceUnavailable: the server refuses. CorruptBinlog: a file is damaged or gone.
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
    """What there is of a source's log: an archive's files, or what its server still has, and the relay's segments.

    Args:
        epoch: the newest that has landed; a server has no other.

    Raises:
        SourceError, SourceUnavailable: nothing tells whose log it is: the server does not answer, and no relay ran.
    """
    folder = Path(spec.relay_dir(source)) / source.source_id
    relay = _relay_parts(folder, source.source_id)
    endpoint = endpoint_of(source)
    if endpoint is None:
        return SourceLog(flavor_of_source(spec, source), [*_archive_parts(source, epoch), *relay])
    uuids = {_uuid(part) for part in relay if part.begin.epoch == epoch}
    try:
        flavor, uuid, parts = _server_parts(endpoint, epoch)
    except SourceError as error:
        begin = newest_begin(folder) if folder.is_dir() else None
        if begin is None:
            raise
        log.warning("the server does not answer: reading the relay's segments", source=source.source_id)
        log.debug("the server does not answer", why=error.message)
        return SourceLog(begin.flavor, relay)
    if uuids and uuid not in uuids:
        parts = []  # another server by now: its files have the same names
    return SourceLog(flavor, [*parts, *relay], endpoint)


def _archive_parts(source: SourceConfig, epoch: int) -> list[LogPart]:
    folder = Path(source.binlog_dir or "")
    found = []
    for name, size in archive_files(folder).items():
        segment = Segment(str(folder / name), source.source_id, epoch, name, FIRST_OFFSET, size)
        found.append(_part(Origin.ARCHIVE, segment))
    return found


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


def _part(origin: Origin, segment: Segment) -> LogPart:
    return LogPart(origin, segment.begin_position, segment.end_position, segment)


def _uuid(part: LogPart) -> str | None:
    assert part.segment is not None
    found = parse_epoch_folder(Path(part.segment.path).parent.parent.name)
    return found[0] if found else None


def plan_parts(begin: Position, end: Position, there: Sequence[LogPart]) -> list[LogPart]:
    """The parts that make up a range of one epoch, in order, without a gap: what nothing holds is `Origin.NONE`.

    Each place is read from the first of `there` that has it. A part's `begin` and `end` are what of it is in the range.
    """
    there = [part for part in there if part.begin.epoch == begin.epoch]
    ends = {part.end for part in there}
    found: list[LogPart] = []
    at = begin
    while at < end:
        holding = next((part for part in there if part.begin <= at < part.end), None)
        if holding is not None:
            upto = min(holding.end, end)
            found.append(replace(holding, begin=at, end=upto))
            at = upto
            continue
        following = min((part.begin for part in there if at < part.begin < end), default=end)
        if at not in ends or not opens_next_file(at, following):
            found.append(LogPart(Origin.NONE, at, following))
        at = following
    return found


def opens_next_file(at: Position, following: Position) -> bool:
    """Whether a place begins the binlog file behind that of `at`."""
    return following.offset == FIRST_OFFSET and file_number(following.binlog_file) == file_number(at.binlog_file) + 1
