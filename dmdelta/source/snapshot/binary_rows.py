"""A SELECT's rows as raw packets in bounded memory: the binary protocol, which PyMySQL does not implement.

Format: MySQL client/server protocol, "COM_STMT_PREPARE", "COM_STMT_EXECUTE" and "Binary Protocol Resultset".
"""

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any

from dmdelta.binlog.resultset.row_reader import PACKET_HEADER, ROW_HEADER
from dmdelta.errors import SourceUnavailable
from dmdelta.source.connection import foreign_errors, server_error

if TYPE_CHECKING:
    from pymysql.connections import Connection

READ_BYTES = 1 << 18
_COM_STMT_PREPARE, _COM_STMT_EXECUTE = 0x16, 0x17
_EXECUTE = Struct("<IBI").pack
_PREPARED = Struct("<xIHH").unpack_from
_ERROR_CODE = Struct("<xH").unpack_from
_FULL = 0xFFFFFF
_ROW, _EOF = ROW_HEADER[0], 0xFE


def row_packets(connection: "Connection[Any]", select: str) -> Iterator[tuple[bytes, int]]:
    """Yields buffers with the packets of a SELECT's rows, and the end of the whole packets; ignore the bytes after it.

    The server sends no faster than the packets are consumed. A generator that is not exhausted leaves the connection
    unusable.

        SourceUnavailable: the connection is lost. SourceError: the server refuses the statement.
        SourceUnavailable: the connection is lost. SourceError: the server refuses.
    """
    where = f"{connection.host}:{connection.port}"
    wire: Any = connection
    with foreign_errors(where):
        _execute(wire, select)
    rest = b""
    while True:
        with foreign_errors(where):
            data = wire._rfile.read1(READ_BYTES)  # noqa: SLF001
        if not data:
            raise SourceUnavailable(
                f"{where} closed the connection", hint="run again: chunks that have landed are kept"
            )
        data = rest + data
        end, last = _whole_rows(data)
        if end:
            yield data, end
        rest = data[end:]
        if last == _FULL:
            with foreign_errors(where):
                packet, rest = _joined(wire, rest)
            yield packet, len(packet)
        elif last is not None:
            _check_end(rest[PACKET_HEADER : PACKET_HEADER + last], where)
            return


def _execute(wire: Any, select: str) -> None:
    """Prepare and execute the statement; reads up to the first row."""
    wire._execute_command(_COM_STMT_PREPARE, select)  # noqa: SLF001
    statement, columns, _parameters = _PREPARED(wire._read_packet()._data)  # noqa: SLF001
    for _ in range(columns + 1):  # and the EOF packet
        wire._read_packet()  # noqa: SLF001
    wire._execute_command(_COM_STMT_EXECUTE, _EXECUTE(statement, 0, 1))  # noqa: SLF001
    for _ in range(1 + columns + 1):
        wire._read_packet()  # noqa: SLF001


def _whole_rows(data: bytes) -> tuple[int, int | None]:
    """Where the last whole row packet ends; and the size of the next packet if it is no plain row and is complete."""
    at, have = 0, len(data)
    while have - at > PACKET_HEADER:
        size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        if data[at + PACKET_HEADER] != _ROW or size == _FULL:
            whole = size == _FULL or at + PACKET_HEADER + size <= have
            return at, size if whole else None
        if at + PACKET_HEADER + size > have:
            return at, None
        at += PACKET_HEADER + size
    return at, None


def _joined(wire: Any, data: bytes) -> tuple[bytes, bytes]:
    """Join the packets of a row of 16 MB or more; returns one packet with all its bytes, and the bytes after it."""
    parts, size = [bytes(PACKET_HEADER)], _FULL
    while size == _FULL:
        if len(data) < PACKET_HEADER:
            data += wire._rfile.read(PACKET_HEADER - len(data))  # noqa: SLF001
        size = int.from_bytes(data[:3], "little")
        part = data[PACKET_HEADER : PACKET_HEADER + size]
        data = data[PACKET_HEADER + size :]
        parts += [part, wire._rfile.read(size - len(part))]  # noqa: SLF001
    return b"".join(parts), data


def _check_end(payload: bytes, where: str) -> None:
    if payload[0] != _EOF:
        text = payload[3:].decode("utf-8", "replace")
        raise server_error(_ERROR_CODE(payload)[0], text[6:] if text[:1] == "#" else text, where)
