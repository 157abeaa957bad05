"""The dump client: requests a server's binlog stream, as a replica does.

Protocol: MySQL, "COM_REGISTER_SLAVE", "COM_BINLOG_DUMP", "COM_BINLOG_DUMP_GTID"; MariaDB, "Replication protocol"
(`@mariadb_slave_capability`, `@slave_connect_state`). Session variables are set under both their old and new names.
"""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import Any
from zlib import crc32

from dmdelta.binlog.events.header import CHECKSUM_SIZE, HEADER_SIZE, EventType
from dmdelta.errors import SourceUnavailable
from dmdelta.model.gtid import GtidSet, MariadbGtidSet
from dmdelta.model.segment import FIRST_OFFSET
from dmdelta.source.connection import foreign_errors, open_connection, query
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.event_stream import WirePieces
from dmdelta.source.relay.gtid_wire import encode_gtid_set
from dmdelta.source.server import ServerIdentity

HEARTBEAT_SECONDS = 1.0
SILENT_HEARTBEATS = 15
"""Number of consecutive missing heartbeats after which the connection counts as lost."""
ARTIFICIAL = 0x20
"""Header flag of an event that the server generated for this stream: it is in no file."""
HEARTBEATS = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
LARGEST_OFFSET = 2**32 - 1
"""COM_BINLOG_DUMP and events have 32 bits for the offset."""

_COM_BINLOG_DUMP = 0x12
_COM_REGISTER_SLAVE = 0x15
_COM_BINLOG_DUMP_GTID = 0x1E
_SEND_ANNOTATE_ROWS = 2
"""Without it, MariaDB omits annotate events: the bytes would differ from the file's."""
_THROUGH_GTID = 4
_DUMP = Struct("<IHI")
_DUMP_GTID = Struct("<HII")
_REGISTER_TAIL = Struct("<HII")
_U32 = Struct("<I")
_U64 = Struct("<Q")


@dataclass(frozen=True, slots=True)
class Replica:
    """How the client identifies itself. Keep one per process: a server ends the older of two dumps of one replica."""

    server_id: int
    uuid: str

    @classmethod
    def random(cls, server_id: int | None = None) -> "Replica":
        """A server id from a range that administrators do not use, unless `server_id` is given."""
        return cls(server_id or random.randint(1 << 30, (1 << 32) - 2), str(uuid.uuid4()))


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A dump from a file and offset, or, with `after`, of everything that is not in that set."""

    endpoint: Endpoint
    server: ServerIdentity
    replica: Replica
    binlog_file: str = ""
    offset: int = FIRST_OFFSET
    after: GtidSet | None = None


@contextmanager
def open_dump(request: DumpRequest) -> Iterator[WirePieces]:
    """The stream of a dump; closed at the end of the `with` block.

    The server first sends an artificial rotate event that names the file, and the format description; from an offset
    beyond 4 the latter is artificial too. For offsets above 32 bits the file is sent from its start: the caller skips
    what it already has.

    Raises:
        SourceUnavailable: no connection. SourceError: the server refuses. The stream itself raises PositionLost.
    """
    connection = open_connection(request.endpoint)
    wire: Any = connection
    try:
        _prepare(wire, request)
        with foreign_errors(request.endpoint):
            _register(wire, request.replica)
            _start(wire, request)
        yield WirePieces(wire._sock, str(request.endpoint), SILENT_HEARTBEATS * HEARTBEAT_SECONDS)  # noqa: SLF001
    finally:
        # No COM_QUIT: the server is sending and reads no command.
        wire._force_close()  # noqa: SLF001


def _prepare(connection: Any, request: DumpRequest) -> None:
    heartbeat = int(HEARTBEAT_SECONDS * 1e9)
    # CRC32 only announces that checksums are supported: files without checksums are sent as they are.
    settings = [("master_binlog_checksum", "'CRC32'"), ("master_heartbeat_period", str(heartbeat))]
    if request.server.flavor == "mariadb":
        settings.append(("mariadb_slave_capability", "4"))
        if isinstance(request.after, MariadbGtidSet):
            settings += [
                ("slave_connect_state", f"'{request.after}'"),
                ("slave_gtid_strict_mode", "0"),
                ("slave_gtid_ignore_duplicates", "0"),
            ]
    else:
        settings += [
            ("source_binlog_checksum", "'CRC32'"),
            ("source_heartbeat_period", str(heartbeat)),
            ("slave_uuid", f"'{request.replica.uuid}'"),
            ("replica_uuid", f"'{request.replica.uuid}'"),
        ]
    query(connection, "SET " + ", ".join(f"@{name} = {value}" for name, value in settings))
    query(connection, "SET net_write_timeout = 600")


def _register(wire: Any, replica: Replica) -> None:
    name = b"dmdelta"
    payload = _U32.pack(replica.server_id) + bytes([len(name)]) + name + b"\0\0" + _REGISTER_TAIL.pack(0, 0, 0)
    wire._execute_command(_COM_REGISTER_SLAVE, payload)  # noqa: SLF001
    wire._read_packet()  # noqa: SLF001


def _start(wire: Any, request: DumpRequest) -> None:
    name = request.binlog_file.encode()
    server_id = request.replica.server_id
    after = request.after
    if after is not None and not isinstance(after, MariadbGtidSet):
        gtids = encode_gtid_set(after)
        payload = _DUMP_GTID.pack(_THROUGH_GTID, server_id, 0) + _U64.pack(FIRST_OFFSET) + _U32.pack(len(gtids)) + gtids
        wire._execute_command(_COM_BINLOG_DUMP_GTID, payload)  # noqa: SLF001
        return
    offset = request.offset if request.offset <= LARGEST_OFFSET else FIRST_OFFSET
    flags = _SEND_ANNOTATE_ROWS if request.server.flavor == "mariadb" else 0
    wire._execute_command(_COM_BINLOG_DUMP, _DUMP.pack(offset, flags, server_id) + name)  # noqa: SLF001


def is_artificial(header: tuple[int, int, int, int, int, int], offset: int) -> bool:
    """Whether the server generated the event for the stream.

    Args:
        offset: where an event of the file would start. Its header has the position of its end modulo 2^32, which is 0
            at a multiple of 4 GiB; an artificial event's has 0.
    """
    kind = header[1]
    if header[4] == 0 and (kind == EventType.FORMAT_DESCRIPTION or (offset + header[3]) % (LARGEST_OFFSET + 1)):
        return True
    return bool(header[5] & ARTIFICIAL) or kind in HEARTBEATS


def named_file(event: bytes) -> str:
    """The file that a rotate or heartbeat event names; before the format is known, it may have a checksum."""
    if crc32(event[:-CHECKSUM_SIZE]) == int.from_bytes(event[-CHECKSUM_SIZE:], "little"):
        event = event[:-CHECKSUM_SIZE]
    body = event[HEADER_SIZE:]
    if event[4] == EventType.ROTATE:
        body = body[8:]
    elif event[4] == EventType.HEARTBEAT_V2:
        return _heartbeat_field(body, 1).decode()
    return body.decode("utf-8", "replace")


def heartbeat_offset(event: bytes) -> int:
    """The offset in a heartbeat, modulo 2^32."""
    if event[4] == EventType.HEARTBEAT_V2:
        value, shift = 0, 0
        for byte in _heartbeat_field(event[HEADER_SIZE:], 2):
            value |= (byte & 0x7F) << shift
            shift += 7
        return value & LARGEST_OFFSET
    return int(_U32.unpack_from(event, 13)[0])


def _heartbeat_field(body: bytes, wanted: int) -> bytes:
    """HEARTBEAT_V2 is a list of (type, length, value); type 1 is the file, 2 the offset, 0 the end."""
    at = 0
    while at + 2 <= len(body) and body[at]:
        kind, size = body[at], body[at + 1]
        if kind == wanted:
            return body[at + 2 : at + 2 + size]
        at += 2 + size
    return b""


def probe_file(request: DumpRequest) -> bytes:
    """The whole format description event of a file on the server. Its first 4 bytes are the file's creation time.

    Raises:
        PositionLost: the server does not have the file.
    """
    with open_dump(request) as pieces:
        for piece in pieces:
            if piece is not None and piece.header[1] == EventType.FORMAT_DESCRIPTION:
                return bytes(piece.data)
    raise SourceUnavailable(f"{request.endpoint} sent no format description", hint="run again")
