"""Resolves a requested start to a position in a source's log as it is now."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from dmdelta.binlog.events.boundary import walk_events
from dmdelta.binlog.events.format_description import parse_format_description
from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.header import GTID_EVENTS, HEADER, EventType
from dmdelta.errors import PositionLost, SourceError, SourceUnavailable
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import file_number, seq_of
from dmdelta.model.segment import FIRST_OFFSET
from dmdelta.segments import read_path
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.archive import archive_files, named_start
from dmdelta.source.relay.dump import (
    HEARTBEATS,
    DumpRequest,
    Replica,
    is_artificial,
    named_file,
    open_dump,
    probe_file,
)
from dmdelta.source.relay.gtid_lookup import locate_after
from dmdelta.source.relay.relay_dir import created_at, format_description
from dmdelta.source.relay.relay_task import Start, StartAfter, StartEdge, first_start
from dmdelta.source.server import server_identity, server_log, server_position

FilePlace = tuple[str, int]
"""Binlog file and offset (bytes)."""


@dataclass(frozen=True, slots=True)
class StartTime:
    """Start before the first transaction that was committed at or after `moment`."""

    moment: datetime


@dataclass(frozen=True, slots=True)
class Beginning:
    """A start as a position in a log, and the end of that log at the time of the lookup."""

    begin: FilePlace
    log_end: FilePlace


def find_on_server(endpoint: Endpoint, start: Start | StartTime) -> Beginning:
    """Look up the start on a server.

    Raises:
        PositionLost: the server has purged it. SourceError: it is in the future.
        SourceUnavailable: the server does not answer.
    """
    with closing(open_connection(endpoint)) as control:
        server = server_identity(control)
        end = server_position(control, server)
        held = server_log(control, server)
    log_end = (end.binlog_file, end.offset)
    request = DumpRequest(endpoint, server, Replica.random(endpoint.server_id))
    if isinstance(start, StartTime):
        first = _file_of(start, list(held.files), partial(_created_on_server, request), str(endpoint))
        return Beginning(_first_on_server(replace(request, binlog_file=first), start, log_end), log_end)
    if isinstance(start, StartAfter):
        return Beginning(locate_after(replace(request, after=parse_gtid_set(start.gtid_set, server.flavor))), log_end)
    if start is StartEdge.CURRENT:
        return Beginning(log_end, log_end)
    return Beginning(first_start(start, held.files, str(endpoint)).place, log_end)


def find_in_archive(folder: Path, start: Start | StartTime) -> Beginning:
    """Look up the start in a folder of whole binlog files.

    Raises:
        PositionLost: the archive does not reach back that far. SourceError: it is in the future, or is a GTID set.
        CorruptBinlog: a file is damaged before the position.
    """
    files = archive_files(folder)
    log_end = list(files.items())[-1]
    if isinstance(start, StartTime):
        first = _file_of(start, list(files), lambda name: created_at(format_description(folder / name)), str(folder))
        later = [folder / name for name in files if file_number(name) >= file_number(first)]
        return Beginning(_first_in_files(later, start) or log_end, log_end)
    return Beginning(first_start(named_start(start), files, str(folder)).place, log_end)


def _created_on_server(request: DumpRequest, name: str) -> int:
    return created_at(probe_file(replace(request, binlog_file=name)))


def _file_of(start: StartTime, names: Sequence[str], created: Callable[[str], int], where: str) -> str:
    """The file that contains the moment: the newest one created in a second before it.

    Args:
        created: when a file was created, in seconds since 1970; called for few files.
    """
    if start.moment > datetime.now(timezone.utc):
        raise SourceError(f"the start time {start.moment} is in the future", hint="give a time in the past")
    older = bisect_left(names, int(start.moment.timestamp()), key=created)
    if older == 0 and file_number(names[0]) > 1:
        oldest = datetime.fromtimestamp(created(names[0]), timezone.utc)
        raise PositionLost(
            f"{where} starts at {oldest} ({names[0]}), later than {start.moment}",
            hint="give a later start time, or take a new snapshot",
        )
    return names[max(older - 1, 0)]


def _first_on_server(request: DumpRequest, start: StartTime, log_end: FilePlace) -> FilePlace:
    """Dump from the file until a transaction is new enough or the end is reached; only GTID events are inspected."""
    name, offset, trailer = request.binlog_file, FIRST_OFFSET, 0
    with open_dump(request) as pieces:
        for piece in pieces:
            if piece is None or not piece.first:
                continue
            kind, size = piece.header[1], piece.header[3]
            if is_artificial(piece.header, offset):
                if kind in HEARTBEATS:
                    return log_end  # the server has nothing more to send
                if kind == EventType.ROTATE:
                    name, offset = named_file(bytes(piece.data)), FIRST_OFFSET
                continue
            if kind == EventType.FORMAT_DESCRIPTION:
                trailer = parse_format_description(bytes(piece.data), name).trailer
            if seq_of(name, offset) >= seq_of(*log_end):
                return log_end
            if kind in GTID_EVENTS and _is_since(start, bytes(piece.data)[: size - trailer]):
                return name, offset
            offset += size
    raise SourceUnavailable(f"{request.endpoint} sent neither an event nor a heartbeat", hint="run again")


def _first_in_files(files: Sequence[Path], start: StartTime) -> FilePlace | None:
    for file in files:
        (segment,) = read_path(file, "start")
        trailer = parse_format_description(format_description(file), file.name).trailer
        with file.open("rb") as stream, file.open("rb") as events:
            for header, _body in walk_events(stream, segment):
                if header.event_type in GTID_EVENTS:
                    events.seek(header.offset)
                    if _is_since(start, events.read(header.size - trailer)):
                        return file.name, header.offset
    return None


def _is_since(start: StartTime, event: bytes) -> bool:
    """Whether a GTID event's transaction was committed at or after the moment; without microseconds, to the second."""
    committed = parse_gtid(event).committed_us
    if committed is not None:
        return committed >= int(start.moment.timestamp() * 1_000_000)
    return int(HEADER.unpack_from(event)[0]) >= int(start.moment.timestamp())
