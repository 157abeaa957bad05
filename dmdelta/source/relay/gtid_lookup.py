"""Finds where a GTID set ends in a server's log."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from dmdelta.binlog.events.header import GTID_EVENTS, EventType
from dmdelta.errors import SourceUnavailable
from dmdelta.model.segment import FIRST_OFFSET
from dmdelta.source.connection import open_connection
from dmdelta.source.relay.dump import (
    HEARTBEATS,
    LARGEST_OFFSET,
    DumpRequest,
    heartbeat_offset,
    is_artificial,
    named_file,
    open_dump,
)
from dmdelta.source.relay.event_stream import Piece
from dmdelta.source.server import server_log


class ToldPlace(NamedTuple):
    """A position as a server reports it.

    Attributes:
        offset: the low 32 bits of the offset.
        gtid: the whole GTID event at that position; b"" where the server waits for the next transaction.
    """

    binlog_file: str
    offset: int
    gtid: bytes = b""


def locate_after(request: DumpRequest) -> tuple[str, int]:
    """(file, offset) of the first transaction that is not in `request.after`, or of the log's end if there is none.

    Raises:
        PositionLost: the server has purged transactions that are not in the set.
    """
    with open_dump(request) as pieces:
        place = first_place(pieces)
    if place is None:
        raise SourceUnavailable(f"{request.endpoint} sent neither an event nor a heartbeat", hint="run again")
    return place.binlog_file, _whole_offset(request, place)


def first_place(pieces: Iterable[Piece | None]) -> ToldPlace | None:
    """Where the first transaction that a server sends starts, or where the server waits for one; None if unknown.

    A server also sends heartbeats, with offsets inside transactions, while it skips. It waits where two consecutive
    heartbeats name the same position.
    """
    binlog_file = ""
    previous: ToldPlace | None = None
    for piece in pieces:
        if piece is None or not piece.first:
            continue
        kind, size, log_pos = piece.header[1], piece.header[3], piece.header[4]
        # A file's last event is a rotate event, too; it names the next file, as the artificial one that follows.
        if kind == EventType.ROTATE and is_artificial(piece.header, offset=0):
            binlog_file = named_file(bytes(piece.data))
        elif kind in HEARTBEATS and not _is_start(piece):
            here = ToldPlace(named_file(bytes(piece.data)) or binlog_file, heartbeat_offset(bytes(piece.data)))
            if here == previous:
                return here
            previous = here
        elif kind in GTID_EVENTS:
            return ToldPlace(binlog_file, (log_pos - size) % (LARGEST_OFFSET + 1), bytes(piece.data))
    return None


def _is_start(piece: Piece) -> bool:
    return heartbeat_offset(bytes(piece.data)) <= FIRST_OFFSET


def _whole_offset(request: DumpRequest, place: ToldPlace) -> int:
    """The offset whose low 32 bits a server reported; a file beyond 4 GiB is read if two offsets match."""
    wrap = LARGEST_OFFSET + 1
    with closing(open_connection(request.endpoint)) as control:
        size = server_log(control, request.server).files.get(place.binlog_file, 0)
    if size - place.offset < wrap:
        return place.offset
    if not place.gtid:
        return size - (size - place.offset) % wrap
    offset = FIRST_OFFSET
    with open_dump(replace(request, binlog_file=place.binlog_file, after=None)) as pieces:
        for piece in pieces:
            if piece is None or (is_artificial(piece.header, offset) and piece.header[1] not in HEARTBEATS):
                continue
            if offset >= size or piece.header[1] in HEARTBEATS:
                break  # the end of the file
            if offset % wrap == place.offset and piece.data == place.gtid:
                return offset
            offset += piece.header[3] if piece.last else 0
    raise SourceUnavailable(f"{request.endpoint} did not send the same transaction again", hint="run again")
