"""Compressed transactions: a stream of events inside one event, decompressed piece by piece.

Format: mysql/binlog/event/codecs/binary.cpp (`Transaction_payload_event`): fields (type, length, value as packed
integers) up to a zero type, then the compressed bytes. Inner events have no checksum.
"""

from collections.abc import Iterator
from typing import Protocol

import zstandard

from dmdelta.binlog.events import HEADER, HEADER_SIZE
from dmdelta.binlog.wire import packed_int
from dmdelta.errors import CorruptBinlog, UnsupportedEvent

READ_SIZE = 256 << 10
_END, _SIZE, _COMPRESSION, _UNCOMPRESSED = 0, 1, 2, 3
_ZSTD, _NONE = 0, 255
_HINT = "the segment is damaged: delete it and let the relay fetch it again"


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def inner_events(body: Readable) -> Iterator[bytes]:
    """The events of a payload, each with its header and without a checksum. Holds one event and one piece in memory.

    Raises:
        CorruptBinlog: fields or events are cut short, or the stream is broken.
        UnsupportedEvent: a compression other than zstd and none.
    """
    compression, told = _read_fields(body)
    if compression not in (_ZSTD, _NONE):
        raise UnsupportedEvent(
            f"transaction payload with compression {compression}", hint="set binlog_transaction_compression=OFF"
        )
    source: Readable = body
    if compression == _ZSTD:
        source = zstandard.ZstdDecompressor().stream_reader(body, read_size=READ_SIZE, read_across_frames=True)  # type: ignore[arg-type]
    try:
        yield from _split(source, told)
    except zstandard.ZstdError as damage:
        raise CorruptBinlog("a compressed transaction does not decompress", hint=_HINT) from damage


def _split(source: Readable, told: int | None) -> Iterator[bytes]:
    """The events of a stream; `told`: how many bytes they have together."""
    buffer, at, size = b"", 0, 0
    while True:
        need = HEADER_SIZE
        if len(buffer) - at >= HEADER_SIZE:
            need = HEADER.unpack_from(buffer, at)[3]
            if need < HEADER_SIZE:
                raise CorruptBinlog(f"a compressed transaction has an event of {need} bytes", hint=_HINT)
        if len(buffer) - at < need:
            buffer, at = _filled(source, buffer[at:], need), 0
            if len(buffer) >= need:
                continue
            if buffer:
                raise CorruptBinlog("a compressed transaction ends inside an event", hint=_HINT)
            if told not in (None, size):
                raise CorruptBinlog(f"a compressed transaction has {size} bytes, not {told}", hint=_HINT)
            return
        yield buffer[at : at + need]
        at += need
        size += need


def _filled(source: Readable, begun: bytes, need: int) -> bytes:
    """`begun` and what follows it: at least `need` bytes, fewer only at the end."""
    # Piece by piece: a size of gigabytes in a damaged event is not believed before its bytes are there.
    pieces, have = [begun], len(begun)
    while have < need:
        piece = source.read(READ_SIZE)
        if not piece:
            break
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


def _read_fields(body: Readable) -> tuple[int, int | None]:
    """The compression, and the bytes of all events together where the fields tell."""
    compression, told = _NONE, None
    while True:
        kind = _read_int(body)
        if kind == _END:
            return compression, told
        size = _read_int(body)
        value = _exactly(body, size)
        if kind == _COMPRESSION:
            compression = packed_int(value, 0)[0]
        elif kind == _UNCOMPRESSED:
            told = packed_int(value, 0)[0]


def _read_int(body: Readable) -> int:
    first = _exactly(body, 1)[0]
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    return first if size is None else int.from_bytes(_exactly(body, size), "little")


def _exactly(body: Readable, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = body.read(size - len(found))
        if not piece:
            raise CorruptBinlog("a compressed transaction is cut short", hint=_HINT)
        found += piece
    return found
